#include "lockstep/train/run_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lockstep/core/error.h"
#include "support/message.h"
#include "support/temp_folder.h"

namespace lockstep::train {
namespace {

using lockstep::testing::message_of;
using lockstep::testing::read_bytes;
using lockstep::testing::TempFolder;

EpochReport report(std::int64_t epoch) {
  EpochReport r;
  r.epoch = epoch;
  r.train_loss = 0.5;
  return r;
}

std::vector<std::int64_t> epochs_in(const std::string& log) {
  std::vector<std::int64_t> epochs;
  std::istringstream lines(read_bytes(log));
  for (std::string line; std::getline(lines, line);)
    epochs.push_back(nlohmann::json::parse(line).at("epoch"));
  return epochs;
}

TEST(RunFolder, OnlyTheWritingRankTouchesTheDisk) {
  const TempFolder folder;
  RunFolder other(folder.path(), "run", /*writes=*/false);
  other.open(0);
  other.add_epoch(report(0));
  other.write_summary({});
  EXPECT_TRUE(folder.entries().empty());
  EXPECT_EQ(other.best_path(), folder / "run/best.safetensors");
  EXPECT_EQ(other.last_path(), folder / "run/last.safetensors");
}

TEST(RunFolder, AResumedRunTakesBackTheLinesThatItWritesAgain) {
  const TempFolder folder;
  const std::string log = folder / "run/log.jsonl";
  {
    RunFolder first(folder.path(), "run", true);
    first.open(0);
    for (int e = 0; e < 4; ++e) first.add_epoch(report(e));
    first.write_summary({});
  }
  // Killed in the midst of a line.
  testing::write_bytes(log, read_bytes(log) + "{\"epoch\":4,\"st");
  RunFolder second(folder.path(), "run", true);
  second.open(2);
  EXPECT_FALSE(std::filesystem::exists(folder / "run/summary.json"));
  EXPECT_EQ(epochs_in(log), (std::vector<std::int64_t>{0, 1}));
  second.add_epoch(report(2));
  EXPECT_EQ(epochs_in(log), (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(RunFolder, NumbersThatAreNotFiniteAndPathsThatAreNoUtf8StayJson) {
  const TempFolder folder;
  RunFolder run(folder.path(), "r\xffn", true);
  run.open(0);
  EpochReport r = report(0);
  r.valid_loss = std::nan("");
  run.add_epoch(r);
  RunSummary summary;
  summary.checkpoint = run.best_path();
  run.write_summary(summary);
  EXPECT_TRUE(
      nlohmann::json::parse(read_bytes(folder / "r\xffn/log.jsonl")).at("valid_loss").is_null());
  EXPECT_NO_THROW(nlohmann::json::parse(read_bytes(folder / "r\xffn/summary.json")));
}

TEST(RunFolder, IsForOneRunAtATime) {
  const TempFolder folder;
  {
    RunFolder first(folder.path(), "run", true);
    const std::string what = message_of<Error>([&] { RunFolder(folder.path(), "run", true); });
    EXPECT_HOLDS(what, folder / "run");
    EXPECT_HOLDS(what, "process " + std::to_string(::getpid()) + " on ");
    EXPECT_HOLDS(what, "--exp_name");
    EXPECT_NO_THROW(RunFolder(folder.path(), "other", true));
    EXPECT_NO_THROW(RunFolder(folder.path(), "run", false));
  }
  EXPECT_NO_THROW(RunFolder(folder.path(), "run", true));
}

TEST(RunFolder, AnEarlierRunIsMovedAsideToTheFirstFreeNumber) {
  const TempFolder folder;
  RunFolder run(folder.path(), "run", true);
  EXPECT_EQ(run.set_aside(), "");
  run.open(0);
  EXPECT_EQ(run.set_aside(), "") << "nothing worth keeping has been written";
  run.add_epoch(report(0));
  testing::write_bytes(run.best_path(), "best");
  testing::write_bytes(folder / "run.2", "a file of that name");
  EXPECT_EQ(run.set_aside(), folder / "run.1");
  EXPECT_EQ(read_bytes(folder / "run.1/best.safetensors"), "best");
  EXPECT_EQ(epochs_in(folder / "run.1/log.jsonl"), (std::vector<std::int64_t>{0}));
  EXPECT_TRUE(std::filesystem::exists(folder / "run.1/tensorboard"));
  EXPECT_FALSE(std::filesystem::exists(run.best_path()));
  EXPECT_FALSE(std::filesystem::exists(run.tensorboard_path()));
  testing::write_bytes(run.last_path(), "last");
  EXPECT_EQ(run.set_aside(), folder / "run.3");
  EXPECT_EQ(read_bytes(folder / "run.3/last.safetensors"), "last");
  RunFolder reader(folder.path(), "run", false);
  testing::write_bytes(run.last_path(), "last");
  EXPECT_EQ(reader.set_aside(), "");
  EXPECT_TRUE(std::filesystem::exists(run.last_path()));
}

TEST(RunFolder, KnowsItsOwnFilesAndItsSummary) {
  const TempFolder folder;
  RunFolder run(folder.path(), "run", true);
  run.open(0);
  testing::write_bytes(run.last_path(), "last");
  EXPECT_TRUE(run.holds(run.last_path()));
  EXPECT_TRUE(run.holds(folder / "run/../run/copy.safetensors"));
  EXPECT_FALSE(run.holds(folder / "last.safetensors"));
  EXPECT_FALSE(run.summary_beside(run.last_path(), 3));
  RunSummary summary;
  summary.epochs = 3;
  summary.images_per_second = 1234.5;
  run.write_summary(summary);
  EXPECT_FALSE(run.summary_beside(run.last_path(), 2)) << "of another length";
  const auto again = run.summary_beside(run.last_path(), 3);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->images_per_second, 1234.5);
  EXPECT_EQ(again->checkpoint, run.best_path());
  testing::write_bytes(folder / "run/summary.json", "{\"epochs\":3}");
  EXPECT_FALSE(run.summary_beside(run.last_path(), 3));
}

TEST(RunFolder, ThatCannotBeMadeIsNamed) {
  const TempFolder folder;
  testing::write_bytes(folder / "file", "in the way");
  const std::string what = message_of<Error>([&] { RunFolder(folder / "file", "run", true); });
  EXPECT_HOLDS(what, "--model_path");
  EXPECT_HOLDS(what, folder / "file/run");
}

}  // namespace
}  // namespace lockstep::train
