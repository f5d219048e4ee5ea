// Checkpoints that can't be gone on from, and disks that can't take one.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <filesystem>
#include <functional>

#include "e2e/training/train_job.h"
#include "lockstep/train/checkpoint.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

// The one complaint of a job that resumes on `ranks` ranks and must not get far.
std::string refusal(const TempFolder& folder, int ranks, const Words& flags) {
  Job job(on_ranks(ranks, trainer(folder, flags)));
  EXPECT_EQ(job.wait(), 1);
  EXPECT_LT(job.seconds(), 5);
  const Words complaints = job.complaints();
  EXPECT_EQ(complaints.size(), 1u) << job.err();
  return complaints.empty() ? "" : complaints[0];
}

class Resumed : public ::testing::Test {
 protected:
  void SetUp() override { run_well(on_ranks(2, trainer(folder_, {"-e", "1"}))); }
  std::string refused(int ranks = 2, const Words& flags = {}) {
    const std::string line = refusal(folder_, ranks, flags + Words{"-e", "2", "--resume"});
    EXPECT_HOLDS(line, files_.last());
    return line;
  }

  TempFolder folder_;
  RunFiles files_ = run_files(folder_);
};

TEST_F(Resumed, AbsentIsNamed) {
  fs::remove(files_.last());
  EXPECT_HOLDS(refused(), "No such file");
}

TEST_F(Resumed, UnreadableIsNamed) {
  if (::geteuid() == 0) {
    fs::remove(files_.last());  // root reads whatever it likes, but no folder as a file
    fs::create_directory(files_.last());
  } else {
    fs::permissions(files_.last(), fs::perms::none);
  }
  refused();
}

TEST_F(Resumed, EveryKindOfDamageIsNamed) {
  const std::string whole = read_bytes(files_.last());
  const auto damaged = [&](const std::function<void(std::string&)>& damage) {
    std::string bytes = whole;
    damage(bytes);
    write_bytes(files_.last(), bytes);
    refused(0);
  };
  damaged([](std::string& b) { b.clear(); });
  damaged([](std::string& b) { b.resize(5); });
  damaged([](std::string& b) { b.resize(b.size() / 2); });
  damaged([](std::string& b) { b += '!'; });
  damaged([](std::string& b) { b[0] = '\xff'; });
  damaged([](std::string& b) { b[20] ^= 1; });
  damaged([](std::string& b) { b = "something else altogether"; });
}

// A bit of a weight that has flipped is no error of the format.
TEST_F(Resumed, AFlippedBitInTheDataIsFound) {
  const std::string whole = read_bytes(files_.last());
  for (const std::size_t place : {whole.size() - 1, whole.size() / 2, whole.size() * 3 / 4}) {
    std::string bytes = whole;
    bytes[place] = static_cast<char>(bytes[place] ^ 0x10);
    write_bytes(files_.last(), bytes);
    EXPECT_HOLDS(refused(), "damaged");
  }
}

TEST_F(Resumed, AnotherModelIsNamed) {
  const std::string line = refused(2, {"--model", "small_net"});
  EXPECT_HOLDS(line, "'mlp'");
  EXPECT_HOLDS(line, "'small_net'");
}

TEST_F(Resumed, AnotherNumberOfRanksIsNamed) {
  EXPECT_HOLDS(refused(3), "written by 2 ranks, resumed by 3");
  EXPECT_HOLDS(refused(0), "written by 2 ranks, resumed by 1");
}

TEST_F(Resumed, ChangedChoicesAreNamed) {
  const std::string line = refused(2, {"-b", "32", "-l", "0.05"});
  EXPECT_HOLDS(line, "batch_size was 64 and is 32");
  EXPECT_HOLDS(line, "learning_rate was 0.1 and is 0.05");
  EXPECT_EQ(line.find("seed"), std::string::npos);
}

TEST_F(Resumed, WeightsAloneAreNotEnough) {
  fs::copy_file(files_.best(), files_.last(), fs::copy_options::overwrite_existing);
  EXPECT_HOLDS(refused(), "no whole training state");
}

// After a save that failed: the file from before loads, and the run goes on from it.
void expect_goes_on(const TempFolder& folder, int ranks) {
  EXPECT_NO_THROW(train::load_checkpoint(run_files(folder).last(), "mlp"));
  const TempFolder whole;
  run_well(on_ranks(ranks, trainer(whole)));
  run_well(on_ranks(ranks, trainer(folder, {"--resume"})));
  EXPECT_TRUE(read_bytes(run_files(folder).last()) == read_bytes(run_files(whole).last()));
}

// Alone: shared memory has a size that is limited too.
TEST(SizeLimit, IsNamedAndTheOldFileStays) {
  const TempFolder folder;
  const RunFiles files = run_files(folder);
  run_well(trainer(folder, {"-e", "1"}));
  const std::string saved = read_bytes(files.last());
  // 512 KB: enough for the weights, not for the whole state.
  Job job(by_rank("ulimit -f 1000; exec \"$@\"", trainer(folder, {"-e", "2", "--resume"})));
  EXPECT_EQ(job.wait(), 1);
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_HOLDS(job.complaints()[0], "rank 0");
  EXPECT_HOLDS(job.complaints()[0], files.path);
  EXPECT_HOLDS(job.complaints()[0], "File too large");
  EXPECT_TRUE(read_bytes(files.last()) == saved);
  for (const auto& entry : fs::directory_iterator(files.path)) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(name == ".lock" || name[0] != '.') << entry.path() << " was left";
  }
  expect_goes_on(folder, 0);
}

TEST(FullDisk, IsNamedAndTheOldFileStays) {
  const TempFolder folder;
  const std::string disk = folder / "disk";
  fs::create_directory(disk);
  // Holds the files of one epoch, but not the next one's beside them.
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=2200k") != 0)
    GTEST_SKIP() << "a full disk needs the right to mount a small one";
  {
    Job job(on_ranks(2, trainer(folder, {"-p", disk})));
    EXPECT_EQ(job.wait(), 1);
    EXPECT_LT(job.seconds(), 10);
    const Words complaints = job.complaints();
    EXPECT_EQ(complaints.size(), 1u) << job.err();
    for (const char* part : {"rank 0", "/disk/run", "No space left"}) EXPECT_HOLDS(job.err(), part);
    EXPECT_NO_THROW(train::load_checkpoint(disk + "/run/best.safetensors", "mlp"));
    fs::copy(disk + "/run", folder / "run", fs::copy_options::recursive);
  }
  EXPECT_EQ(::umount(disk.c_str()), 0);
  expect_goes_on(folder, 2);
}

TEST(RunFolder, ThatCannotBeMadeIsNamedAndNoRankWaitsForIt) {
  const TempFolder folder;
  write_bytes(folder / "file", "in the way");
  const std::string line = refusal(folder, 2, {"-p", folder / "file"});
  EXPECT_HOLDS(line, "rank 0");
  EXPECT_HOLDS(line, folder / "file");
}

}  // namespace
}  // namespace lockstep::testing
