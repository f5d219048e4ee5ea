// Killed or stopped at any moment and resumed, a run ends in the bytes of an uninterrupted one.
#include <gtest/gtest.h>

#include <filesystem>

#include "e2e/training/event_reader.h"
#include "e2e/training/train_job.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

struct Moment {
  const char* name;
  int ranks;
  int save_every;
  int saves;  // killed when the last checkpoint has been seen to change so often
};

class Killed : public ::testing::TestWithParam<Moment> {
 protected:
  static Words flags() { return {"-e", "6", "-w", "2"}; }
  Words job(const TempFolder& folder, const Words& more) const {
    return on_ranks(GetParam().ranks, trainer(folder, flags() + more));
  }
};

void expect_same_run(const RunFiles& a, const RunFiles& b) {
  EXPECT_TRUE(read_bytes(a.last()) == read_bytes(b.last())) << "last checkpoints differ";
  EXPECT_TRUE(read_bytes(a.best()) == read_bytes(b.best())) << "best checkpoints differ";
  const auto whole = json_lines(a.log()), resumed = json_lines(b.log());
  ASSERT_EQ(whole.size(), resumed.size());
  for (std::size_t e = 0; e < whole.size(); ++e)
    for (const char* key : {"epoch", "step", "learning_rate", "train_loss", "train_acc",
                            "valid_loss", "valid_acc", "is_best"})
      EXPECT_EQ(whole[e].at(key), resumed[e].at(key)) << key << " of epoch " << e;
  EXPECT_EQ(read_scalars(a.path + "/tensorboard"), read_scalars(b.path + "/tensorboard"));
}

TEST_P(Killed, ResumesToTheSameBytes) {
  const Moment moment = GetParam();
  const TempFolder whole;
  run_well(job(whole, {}));
  const Words saving = {"--save-every", std::to_string(moment.save_every)};
  // On a busy machine the run may be through before the signal is out.
  for (int attempt = 0; attempt < 4; ++attempt) {
    const TempFolder broken;
    {
      Job victim(job(broken, saving));
      wait_for_saves(victim, run_files(broken).last(), moment.saves);
      victim.send(SIGKILL);
      EXPECT_NE(victim.wait(), -1);
    }
    if (fs::exists(run_files(broken).summary())) continue;
    run_well(job(broken, saving + Words{"--resume"}));
    expect_same_run(run_files(whole), run_files(broken));
    return;
  }
  GTEST_FAIL() << "the run was never caught in the midst";
}

INSTANTIATE_TEST_SUITE_P(
    Resume, Killed,
    ::testing::Values(Moment{"AloneAtOnce", 0, 1, 1}, Moment{"AloneInTheMidst", 0, 3, 4},
                      Moment{"AloneAfterAnEpoch", 0, 0, 1}, Moment{"TwoRanksAtOnce", 2, 1, 1},
                      Moment{"TwoRanksAtSomeStep", 2, 1, 15}, Moment{"TwoRanksInTheMidst", 2, 3, 6},
                      Moment{"TwoRanksAfterAnEpoch", 2, 0, 2}),
    [](const auto& info) { return info.param.name; });

TEST(Resume, AgainAndAgain) {
  const TempFolder whole, broken;
  const Words flags = {"-e", "4"};
  run_well(on_ranks(2, trainer(whole, flags)));
  const Words saving = flags + Words{"--save-every", "1"};
  Words resume;
  for (int round = 0; round < 4; ++round) {
    Job victim(on_ranks(2, trainer(broken, saving + resume)));
    if (!wait_for_saves(victim, run_files(broken).last(), 3 + round)) break;
    victim.send(SIGKILL);
    victim.wait();
    resume = {"--resume"};
  }
  ASSERT_FALSE(resume.empty());
  run_well(on_ranks(2, trainer(broken, saving + resume)));
  expect_same_run(run_files(whole), run_files(broken));
}

TEST(Resume, AFinishedRunIsLeftAsItIs) {
  const TempFolder folder;
  run_well(on_ranks(2, trainer(folder)));
  const std::string last = read_bytes(run_files(folder).last());
  const auto log = json_lines(run_files(folder).log());
  const std::string before = read_bytes(run_files(folder).summary());
  const std::string out = run_well(on_ranks(2, trainer(folder, {"--resume"})));
  EXPECT_HOLDS(out, "finished already, after 3 epochs");
  EXPECT_EQ(out.find(" 0 images/s"), std::string::npos) << out;
  EXPECT_EQ(read_bytes(run_files(folder).summary()), before);
  EXPECT_TRUE(read_bytes(run_files(folder).last()) == last);
  EXPECT_EQ(json_lines(run_files(folder).log()), log);
  const auto summary = nlohmann::json::parse(read_bytes(run_files(folder).summary()));
  EXPECT_EQ(summary.at("epochs"), 3);
  EXPECT_EQ(summary.at("last_valid_acc"), log.back().at("valid_acc"));
}

TEST(Resume, MoreEpochsGoOnWhereTheRunEnded) {
  const TempFolder whole, longer;
  run_well(on_ranks(2, trainer(whole, {"-e", "4"})));
  run_well(on_ranks(2, trainer(longer, {"-e", "2"})));
  run_well(on_ranks(2, trainer(longer, {"-e", "4", "--resume", run_files(longer).last()})));
  expect_same_run(run_files(whole), run_files(longer));
}

// Under a new name the weights of the best epoch come along.
TEST(Resume, IntoAnotherFolderTakesTheBestWeightsAlong) {
  const TempFolder folder;
  run_well(on_ranks(2, trainer(folder)));
  const std::string last = run_files(folder).last();
  run_well(on_ranks(2, trainer(folder, {"-n", "other", "--resume", last})));
  const RunFiles other = run_files(folder, "other");
  EXPECT_TRUE(read_bytes(other.best()) == read_bytes(run_files(folder).best()));
  // Where they are gone, the next epoch's are the best.
  fs::remove(run_files(folder).best());
  run_well(on_ranks(2, trainer(folder, {"-e", "4", "--resume"})));
  EXPECT_TRUE(fs::exists(run_files(folder).best()));
}

class Interrupted : public ::testing::TestWithParam<int> {};

TEST_P(Interrupted, EndsWithinAStepAndSaysHowToGoOn) {
  const int ranks = GetParam();
  const TempFolder whole, broken;
  const Words flags = {"-e", "6"};
  run_well(on_ranks(ranks, trainer(whole, flags)));
  {
    Job job(on_ranks(ranks, trainer(broken, flags + Words{"--save-every", "1"})));
    ASSERT_TRUE(wait_for_saves(job, run_files(broken).last(), 4)) << job.err();
    const double before = job.seconds();
    job.send(SIGINT);
    EXPECT_EQ(job.wait(), 130);
    EXPECT_LT(job.seconds() - before, 5);
    EXPECT_HOLDS(job.out(), "stopped on request; go on with --resume " + run_files(broken).last());
    EXPECT_TRUE(job.complaints().empty()) << job.err();
  }
  run_well(on_ranks(ranks, trainer(broken, flags + Words{"--resume", run_files(broken).last()})));
  expect_same_run(run_files(whole), run_files(broken));
}

INSTANTIATE_TEST_SUITE_P(Resume, Interrupted, ::testing::Values(0, 2));

}  // namespace
}  // namespace lockstep::testing
