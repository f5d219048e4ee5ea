// What the trainer says to flags and values that can't be meant.
#include <gtest/gtest.h>

#include "e2e/training/train_job.h"

namespace lockstep::testing {
namespace {

struct Mistake {
  const char* name;
  Words flags;
  const char* complaint;  // has to be in the one line
};

class WrongFlag : public ::testing::TestWithParam<Mistake> {};

TEST_P(WrongFlag, IsOneLineAndExitCodeTwo) {
  const TempFolder folder;
  Job job(trainer(folder, GetParam().flags));
  EXPECT_EQ(job.wait(), 2);
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_HOLDS(job.complaints()[0], GetParam().complaint);
  EXPECT_EQ(job.out(), "");
  EXPECT_TRUE(folder.entries().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Usage, WrongFlag,
    ::testing::Values(
        Mistake{"Unknown", {"--bogus"}, "--bogus"}, Mistake{"StrayWord", {"stray"}, "stray"},
        Mistake{"UnknownModel", {"--model", "vgg"}, "--model: vgg not in {toy_net,mlp,small_net}"},
        Mistake{"UnknownSet", {"--dataset", "cifar"}, "--dataset: cifar not in {mnist,digits}"},
        Mistake{"UnknownWarmup", {"-t", "exp"}, "--warmup_type: exp not in {cosine,linear}"},
        Mistake{"UnknownVote", {"--stop-vote=two"}, "--stop-vote: two not in {all,any,rank0}"},
        Mistake{"NoNumber", {"-b", "many"}, "--batch_size"},
        Mistake{"NumberAndMore", {"-e", "3x"}, "--epochs"},
        Mistake{"BeyondInteger", {"-e", "99999999999999999999"}, "--epochs"},
        Mistake{"NoValue", {"-l"}, "--learning_rate"},
        Mistake{"BatchZero", {"-b", "0"}, "--batch_size: expected at least 1 but got 0"},
        Mistake{"RateNegative",
                {"-l", "-0.1"},
                "--learning_rate: expected a number above 0 but got -0.1"},
        Mistake{"RateZero", {"-l", "0"}, "--learning_rate: expected a number above 0 but got 0"},
        Mistake{"RateNan", {"-l", "nan"}, "--learning_rate: expected a number above 0 but got nan"},
        Mistake{"RateInf", {"-l", "inf"}, "--learning_rate: expected a number above 0 but got inf"},
        Mistake{"NoEpochs", {"-e", "0"}, "--epochs: expected at least 1 but got 0"},
        Mistake{"WarmupNegative", {"-w", "-1"}, "--warmup_epochs: expected at least 0 but got -1"},
        Mistake{
            "MomentumOne", {"--momentum=1"}, "--momentum: expected a number in [0, 1) but got 1"},
        Mistake{"DecayNegative", {"--weight-decay=-1"}, "--weight-decay"},
        Mistake{"AlphaTwo", {"--lookahead-alpha=2"}, "--lookahead-alpha"},
        Mistake{"FactorOne", {"--plateau-factor=1"}, "--plateau-factor"},
        Mistake{"StopPatience", {"--stop-patience=0"}, "--stop-patience"},
        Mistake{"BucketNegative", {"--bucket-cap-mb=-1"}, "--bucket-cap-mb"},
        Mistake{"Workers", {"--workers=-1"}, "--workers: expected at least 0 but got -1"},
        Mistake{"TooManyWorkers", {"--workers=100000"}, "--workers: expected at most 1024"},
        Mistake{"TooManyThreads", {"--threads=100000"}, "--threads: expected 0"},
        Mistake{"SaveEvery", {"--save-every=-1"}, "--save-every"},
        Mistake{"Threads", {"--threads=-1"}, "--threads"},
        Mistake{"Timeout", {"--timeout=0"}, "--timeout: expected seconds above 0"},
        Mistake{"TimeoutNan", {"--timeout=nan"}, "--timeout: expected seconds above 0"},
        Mistake{"NegativeSeed", {"-s", "-1"}, "-1"},
        Mistake{"SeedTooLarge", {"-s", "18446744073709551616"}, "18446744073709551616"},
        Mistake{"BatchTooLarge", {"-b", "99999999999999999999"}, "99999999999999999999"},
        Mistake{"Hexadecimal", {"-b", "0x10"}, "0x10"},
        Mistake{"EmptyDataPath", {"-d", ""}, "--data_path: expected a folder"},
        Mistake{"DigitsWithPath", {"-d", "/x", "--dataset", "digits"}, "--data_path"},
        Mistake{"NameWithSlash",
                {"-n", "a/b"},
                "--exp_name: expected a name without '/' but got 'a/b'"},
        Mistake{"NameOfParent", {"-n", ".."}, "--exp_name"}),
    [](const auto& info) { return info.param.name; });

// All ranks fail alike: one speaks for all.
TEST(Usage, ManyRanksMakeOneComplaint) {
  const TempFolder folder;
  Job job(on_ranks(3, trainer(folder, {"-b", "0"})));
  EXPECT_EQ(job.wait(), 2);
  EXPECT_EQ(job.complaints(),
            Words{"lockstep-train: rank 0: --batch_size: expected at least 1 but got 0"});
  EXPECT_LT(job.seconds(), 5);
}

// Said before anything is installed or built.
TEST(Usage, TheScriptNamesABadNumberOfRanks) {
  for (const char* ranks : {"0", "x", "-1", "2.5", ""}) {
    for (const Words& flag : {Words{"--ranks", ranks}, Words{std::string("--ranks=") + ranks}}) {
      Job job(Words{LOCKSTEP_SOURCE_DIR "/scripts/train"} + flag);
      EXPECT_EQ(job.wait(), 2) << ranks;
      EXPECT_EQ(job.err(), std::string("train: --ranks is '") + ranks +
                               "', must be a whole number from 1 on\n");
    }
  }
  Job job({LOCKSTEP_SOURCE_DIR "/scripts/train", "--ranks"});
  EXPECT_EQ(job.wait(), 2);
  EXPECT_EQ(job.err(), "train: --ranks needs a number\n");
}

TEST(Usage, ABatchOfOneImageIsNamedWhereTheModelNormsOverIt) {
  const TempFolder folder;
  Job job(on_ranks(2, trainer(folder, {"--model", "toy_net", "-b", "1"})));
  EXPECT_EQ(job.wait(), 1);
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_HOLDS(job.complaints()[0], "--batch_size");
}

TEST(Usage, HelpIsShownOnceAndEndsWell) {
  const TempFolder folder;
  const std::string help = run_well(on_ranks(2, trainer(folder, {"--help"})));
  const std::string usage = "Usage: lockstep-train";
  const std::size_t first = help.find(usage);
  ASSERT_NE(first, std::string::npos) << help;
  EXPECT_EQ(help.find(usage, first + 1), std::string::npos);
  for (const char* flag :
       {"-n,--exp_name", "-l,--learning_rate", "-b,--batch_size", "-e,--epochs",
        "-w,--warmup_epochs", "-t,--warmup_type", "-s,--seed_num", "-d,--data_path",
        "-p,--model_path", "--local_rank", "--recipe-compat", "--model", "--dataset", "--threads",
        "--deterministic", "--resume", "--save-every", "--timeout"})
    EXPECT_HOLDS(help, flag);
  EXPECT_TRUE(folder.entries().empty());
}

TEST(Usage, VersionIsOneLine) {
  EXPECT_EQ(run_well({LOCKSTEP_TRAINER, "--version"}), "lockstep-train 0.1.0\n");
}

TEST(Usage, TheLastOfTwoValuesCountsAndOldLaunchersAreUnderstood) {
  const TempFolder folder;
  const std::string out =
      run_well(trainer(folder, {"--local_rank=0", "-e", "1", "-b", "512", "--batch-size", "256"}));
  EXPECT_HOLDS(out, "batch 256 per rank");
  EXPECT_HOLDS(out, "epoch: 000/1,");
}

}  // namespace
}  // namespace lockstep::testing
