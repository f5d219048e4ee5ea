#include "lockstep/core/atomic_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include "lockstep/core/error.h"
#include "lockstep/core/safetensors.h"
#include "support/expect_close.h"
#include "support/message.h"
#include "support/temp_folder.h"

namespace lockstep {
namespace {

using Names = std::vector<std::string>;
using testing::message_of;
using testing::read_bytes;
using testing::TempFolder;
using testing::write_bytes;

TEST(AtomicFile, TheOldContentsStayUntilCommit) {
  const TempFolder folder;
  const std::string path = folder / "x";
  write_file_atomically(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
    EXPECT_EQ(read_bytes(path), "old");
    EXPECT_EQ(folder.entries().size(), 2u);
    file.commit();
    EXPECT_EQ(read_bytes(path), "new");
    EXPECT_ANY_THROW(file.write("more"));
    EXPECT_ANY_THROW(file.commit());
  }
  EXPECT_EQ(folder.entries(), Names({"x"}));
}

TEST(AtomicFile, WithoutCommitNothingIsLeft) {
  const TempFolder folder;
  const std::string path = folder / "x";
  write_file_atomically(path, "old");
  { AtomicFile(path).write("new"); }
  EXPECT_EQ(read_bytes(path), "old");
  EXPECT_EQ(folder.entries(), Names({"x"}));
}

TEST(AtomicFile, LeftoversOfKilledWritersAreRemovedButNotLivingOnes) {
  const TempFolder folder;
  const std::string path = folder / "x";
  write_bytes(folder / ".x.0123456789abcdef.tmp", "left by a killed writer");
  write_bytes(folder / ".x.mine.tmp", "somebody's own file");
  write_bytes(folder / ".y.0123456789abcdef.tmp", "another path's");
  AtomicFile living(path);
  living.write("first");
  write_file_atomically(path, "second");
  EXPECT_EQ(read_bytes(path), "second");
  living.commit();
  EXPECT_EQ(read_bytes(path), "first");
  EXPECT_EQ(folder.entries(), Names({".x.mine.tmp", ".y.0123456789abcdef.tmp", "x"}));
}

TEST(AtomicFile, PermissionsAreKeptAndLinksFollowed) {
  const TempFolder folder;
  const std::string path = folder / "x";
  write_bytes(path, "old");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  ASSERT_EQ(::symlink("x", (folder / "link").c_str()), 0);
  write_file_atomically(folder / "link", "new");
  EXPECT_EQ(read_bytes(path), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  struct stat info;
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
}

TEST(AtomicFile, WrongPlacesAreErrorsThatNameThem) {
  const TempFolder folder;
  EXPECT_HOLDS(message_of<Error>([&] { write_file_atomically(folder / "no/such/folder", "x"); }),
               "No such file or directory");
  EXPECT_HOLDS(message_of<Error>([&] { write_file_atomically(folder.path(), "x"); }),
               "not a regular file");
  EXPECT_HOLDS(message_of<Error>([&] { write_file_atomically(folder.path() + "/", "x"); }),
               "not the name of a file");
  EXPECT_HOLDS(message_of<Error>([&] { write_file_atomically("/dev/null", "x"); }), "/dev/null");
}

// https://github.com/CanReader/FastNN/pull/13: a failed save must leave the old file as it was.
TEST(AtomicFile, ASizeLimitIsAnErrorAndKeepsTheOldFile) {
  const TempFolder folder;
  const std::string path = folder / "model.safetensors";
  save_safetensors(path, {{"x", tensor<float>({1, 2, 3})}});
  const std::string before = read_bytes(path);

  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit limit = old_limit;
  limit.rlim_cur = 64 << 10;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string message = message_of<Error>([&] {
    save_safetensors(path, {{"x", zeros({100'000})}});
  });
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  ::signal(SIGXFSZ, old_handler);

  EXPECT_HOLDS(message, "model.safetensors");
  EXPECT_HOLDS(message, "File too large");
  EXPECT_HOLDS(message, "at byte 65536");
  EXPECT_EQ(read_bytes(path), before);
  EXPECT_EQ(folder.entries(), Names({"model.safetensors"}));
  save_safetensors(path, {{"x", zeros({100'000})}});  // and life goes on
  EXPECT_EQ(load_safetensors(path).at("x").numel(), 100'000);
}

TEST(AtomicFile, ALinkToADeviceIsRefused) {
  const TempFolder folder;
  ASSERT_EQ(::symlink("/dev/null", (folder / "x").c_str()), 0);
  EXPECT_HOLDS(message_of<Error>([&] { write_file_atomically(folder / "x", "y"); }),
               "/dev/null\": it is not a regular file");
}

// A process killed at any moment of a save leaves the old file or the new one.
TEST(AtomicFile, KilledWritersLeaveAWholeFileAndNoPile) {
  const TempFolder folder = TempFolder::in_memory();
  const std::string path = folder / "model.safetensors";
  constexpr std::int64_t kElements = 1 << 18;
  const auto contents = [](float value) {
    return TensorMap{{"x", full({kElements}, value)}, {"y", full({3}, value)}};
  };
  save_safetensors(path, contents(1));
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int i = 0;; ++i) save_safetensors(path, contents(i % 2 ? 1.0f : 2.0f));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 15'000));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const TensorMap back = load_safetensors(path);
    const float value = back.at("y").data<float>()[0];
    ASSERT_TRUE(value == 1 || value == 2);
    ASSERT_TRUE(testing::same_bits(back.at("x"), contents(value).at("x")));
    ASSERT_LE(folder.entries().size(), 2u);
  }
  save_safetensors(path, contents(1));
  EXPECT_EQ(folder.entries(), Names({"model.safetensors"}));
}

volatile sig_atomic_t alarms = 0;

// https://github.com/marian-nmt/marian-dev/pull/660: signals of the program must not break a save.
TEST(AtomicFile, SignalsDuringASaveChangeNothing) {
  const TempFolder folder;
  Tensor x = empty({50'000'000 / 4});
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(i);
  save_safetensors(folder / "quiet", {{"x", x}});

  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { alarms = alarms + 1; };  // without SA_RESTART
  ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
  const itimerval every_ms{{0, 1000}, {0, 1000}};
  const itimerval off{};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &every_ms, nullptr), 0);
  save_safetensors(folder / "alarmed", {{"x", x}});
  const TensorMap back = load_safetensors(folder / "alarmed");
  ::setitimer(ITIMER_REAL, &off, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);

  EXPECT_GT(alarms, 0);
  EXPECT_SAME_BITS(back.at("x"), x);
  EXPECT_TRUE(read_bytes(folder / "quiet") == read_bytes(folder / "alarmed"));
}

}  // namespace
}  // namespace lockstep
