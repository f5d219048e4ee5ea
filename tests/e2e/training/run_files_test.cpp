// A run from outside: what it prints, what it leaves, and that it is the same each time.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "e2e/training/event_reader.h"
#include "e2e/training/train_job.h"
#include "lockstep/train/checkpoint.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

TEST(Training, TwoRanksLeaveTheFilesThatAreDocumented) {
  const TempFolder folder;
  const RunFiles files = run_files(folder);
  const std::string out = run_well(on_ranks(2, trainer(folder)));

  // The recipe's line, once per epoch, by one rank.
  static const std::regex kLine(
      R"(epoch: \d{3}/3, time: \d+\.\d\ds, learning_rate: [\d.e-]+, train_loss: \d+\.\d{4}, )"
      R"(train_acc: \d\.\d{4}, valid_loss: \d+\.\d{4}, valid_acc: \d\.\d{4}\n)");
  EXPECT_EQ(std::distance(std::sregex_iterator(out.begin(), out.end(), kLine), {}), 3) << out;
  EXPECT_HOLDS(out, "2 ranks");
  EXPECT_HOLDS(out, files.best());
  EXPECT_HOLDS(out, files.path + "/tensorboard");

  EXPECT_EQ(folder.entries(), Words{"run"});
  Words names;
  for (const auto& entry : fs::directory_iterator(files.path))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (Words{".lock", "best.safetensors", "last.safetensors", "log.jsonl",
                          "summary.json", "tensorboard"}));

  const auto log = json_lines(files.log());
  ASSERT_EQ(log.size(), 3u);
  double best = 0;
  for (std::size_t e = 0; e < log.size(); ++e) {
    EXPECT_EQ(log[e].at("epoch"), e);
    EXPECT_EQ(log[e].at("step"), 12 * (e + 1));  // ceil(ceil(1442 / 2) / 64)
    EXPECT_EQ(log[e].at("is_best").get<bool>(), log[e].at("valid_acc") > best);
    best = std::max(best, log[e].at("valid_acc").get<double>());
  }
  EXPECT_GT(best, 0.5);

  const auto summary = nlohmann::json::parse(read_bytes(files.summary()));
  Words keys;
  for (const auto& [key, value] : summary.items()) keys.push_back(key);
  EXPECT_EQ(keys, (Words{"best_valid_acc", "checkpoint", "epochs", "exposed_comm_ms_per_step",
                         "images_per_second", "last_valid_acc", "seconds", "world_size"}));
  EXPECT_EQ(summary.at("best_valid_acc"), best);
  EXPECT_EQ(summary.at("last_valid_acc"), log[2].at("valid_acc"));
  EXPECT_EQ(summary.at("epochs"), 3);
  EXPECT_EQ(summary.at("world_size"), 2);
  EXPECT_EQ(summary.at("checkpoint"), files.best());
  EXPECT_GT(summary.at("images_per_second"), 0);
  EXPECT_GT(summary.at("seconds"), 0);
  EXPECT_GE(summary.at("exposed_comm_ms_per_step"), 0);

  const auto scalars = read_scalars(files.path + "/tensorboard");
  const std::pair<const char*, const char*> tags[] = {{"LR", "learning_rate"},
                                                      {"Loss/train", "train_loss"},
                                                      {"Loss/valid", "valid_loss"},
                                                      {"Acc/train", "train_acc"},
                                                      {"Acc/valid", "valid_acc"}};
  ASSERT_EQ(scalars.size(), std::size(tags));
  for (const auto& [tag, key] : tags) {
    ASSERT_TRUE(scalars.contains(tag)) << tag;
    ASSERT_EQ(scalars.at(tag).size(), 3u) << tag;
    for (std::int64_t e = 0; e < 3; ++e)
      EXPECT_EQ(scalars.at(tag).at(e), log[e].at(key).get<float>()) << tag << " of epoch " << e;
  }

  // Weights alone, under the names of the model.
  const TensorMap weights = train::load_checkpoint(files.best(), "mlp");
  EXPECT_EQ(weights.size(), 6u);
  EXPECT_EQ(weights.at("layers.0.weight").shape(), (Shape{128, 784}));
}

TEST(Training, TheSameSeedGivesTheSameBytesAndAnotherDoesNot) {
  const TempFolder a, b, c;
  run_well(on_ranks(2, trainer(a)));
  // Neither threads of the loader nor buckets nor saving in between may change a bit.
  run_well(on_ranks(2, trainer(b, {"--workers=0", "--bucket-cap-mb=0.1", "--save-every=5"})));
  run_well(on_ranks(2, trainer(c, {"-s", "43"})));
  EXPECT_EQ(read_bytes(run_files(a).best()), read_bytes(run_files(b).best()));
  EXPECT_EQ(read_bytes(run_files(a).last()), read_bytes(run_files(b).last()));
  EXPECT_NE(read_bytes(run_files(a).best()), read_bytes(run_files(c).best()));
}

TEST(Training, OneRankNeedsNoLauncher) {
  const TempFolder alone, launched;
  EXPECT_HOLDS(run_well(trainer(alone)), "1 rank ");
  run_well(on_ranks(1, trainer(launched)));
  EXPECT_EQ(read_bytes(run_files(alone).best()), read_bytes(run_files(launched).best()));
  EXPECT_EQ(nlohmann::json::parse(read_bytes(run_files(alone).summary())).at("world_size"), 1);
}

// A second run under the same name takes the place of the first, whose files are kept.
TEST(Training, ARunUnderAnOldNameMovesTheOldOneAside) {
  const TempFolder folder;
  run_well(trainer(folder));
  const RunFiles moved = run_files(folder, "run.1");
  const std::string best = read_bytes(run_files(folder).best()),
                    old_summary = read_bytes(run_files(folder).summary());
  const std::string out = run_well(trainer(folder, {"-e", "2", "-s", "7"}));
  EXPECT_HOLDS(out, moved.path);
  EXPECT_HOLDS(out, "--resume");
  EXPECT_TRUE(read_bytes(moved.best()) == best);
  EXPECT_EQ(read_bytes(moved.summary()), old_summary);
  EXPECT_EQ(json_lines(moved.log()).size(), 3u);
  EXPECT_FALSE(read_bytes(run_files(folder).best()) == best);
  EXPECT_EQ(json_lines(run_files(folder).log()).size(), 2u);
  const auto summary = nlohmann::json::parse(read_bytes(run_files(folder).summary()));
  EXPECT_EQ(summary.at("epochs"), 2);
  EXPECT_EQ(read_scalars(run_files(folder).path + "/tensorboard").at("LR").size(), 2u);
}

TEST(Training, TwoRunsInOneFolderAreRefused) {
  const TempFolder folder;
  Job first(on_ranks(2, trainer(folder, {"-e", "5000", "--stop-patience=5000"})));
  ASSERT_TRUE(wait_for_saves(first, run_files(folder).last(), 1)) << first.err();
  const pid_t holder = first.rank_pid(0);
  for (const Words& more : {Words{}, Words{"--resume"}}) {
    Job second(on_ranks(2, trainer(folder, more)));
    EXPECT_EQ(second.wait(), 1);
    ASSERT_EQ(second.complaints().size(), 1u) << second.err();
    EXPECT_HOLDS(second.complaints()[0], run_files(folder).path);
    EXPECT_HOLDS(second.complaints()[0], "process " + std::to_string(holder) + " on ");
  }
  EXPECT_EQ(folder.entries(), Words{"run"});
  // Death lets go of the folder.
  first.send(SIGKILL);
  EXPECT_EQ(first.wait(), 137);
  run_well(on_ranks(2, trainer(folder)));
}

// davisking/dlib#2209: an infinite loss must neither crash the trainer nor let it run for ever.
TEST(Training, ALossThatIsNotFiniteIsReportedAndStopsTheRun) {
  const TempFolder folder;
  Job job(on_ranks(2, trainer(folder, {"-l", "1e30", "-e", "50", "--stop-patience", "3"})));
  EXPECT_EQ(job.wait(), 0) << job.err();
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_HOLDS(job.complaints()[0], "epoch 0: the loss is not finite");
  // The sign of a NaN is noise.
  EXPECT_HOLDS(job.out() + job.err(), "nan");
  for (const std::string& text : {job.out(), job.err(), read_bytes(run_files(folder).log()),
                                  read_bytes(run_files(folder).summary())})
    EXPECT_EQ(text.find("-nan"), std::string::npos) << text;
  const auto log = json_lines(run_files(folder).log());
  EXPECT_LE(log.size(), 4u);
  EXPECT_TRUE(log.back().at("train_loss").is_null());
  EXPECT_TRUE(std::isfinite(nlohmann::json::parse(read_bytes(run_files(folder).summary()))
                                .at("best_valid_acc")
                                .get<double>()));
}

// The published code divides a loss that is a mean already by the batch size, and trains its first
// epoch at rate 0.
TEST(Training, RecipeCompatPrintsThePublishedNumbers) {
  const TempFolder ours, compat;
  run_well(on_ranks(2, trainer(ours, {"-w", "3"})));
  run_well(on_ranks(2, trainer(compat, {"-w", "3", "--recipe-compat"})));
  const auto a = json_lines(run_files(ours).log()), b = json_lines(run_files(compat).log());
  ASSERT_EQ(b.size(), 3u);
  for (int e = 0; e < 3; ++e) EXPECT_NEAR(b[e].at("learning_rate"), 0.1 * e / 3, 1e-9);
  // Untrained in epoch 0: the loss of ten equally likely classes, over 64.
  EXPECT_NEAR(b[0].at("valid_loss").get<double>(), std::log(10.) / 64, 0.002);
  EXPECT_GT(a[0].at("valid_loss"), 1);
  EXPECT_GT(a[2].at("valid_acc"), b[2].at("valid_acc"));
}

}  // namespace
}  // namespace lockstep::testing
