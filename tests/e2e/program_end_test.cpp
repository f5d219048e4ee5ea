// Programs with the library inside: how they start, live in poor surroundings, and end.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "dist/run_program.h"
#include "lockstep/core/config.h"

namespace lockstep::testing {
namespace {

using dist::Program;

// A CPU program threw at exit: pytorch/pytorch#35736.
TEST(ProcessEnd, IsQuietFiftyTimes) {
  for (int run = 0; run < 50; ++run) {
    Program program({GUEST_GRADIENT});
    ASSERT_EQ(program.wait(), 0) << "run " << run;
    ASSERT_EQ(program.out(), "6.5 13\n");
    ASSERT_EQ(program.err(), "");
  }
}

// Two OpenMP runtimes in one process give wrong sums: pytorch/pytorch#193784.
TEST(LoadedObjects, HoldAtMostOneOpenMpRuntime) {
  Program ldd({"ldd", GUEST_GRADIENT});
  ASSERT_EQ(ldd.wait(), 0) << ldd.err();
  const std::string libraries = ldd.out();
  static const std::regex kRuntime(R"(lib(gomp|omp|iomp5)\.so)");
  std::set<std::string> runtimes;
  for (std::sregex_iterator it(libraries.begin(), libraries.end(), kRuntime), end; it != end; ++it)
    runtimes.insert(it->str());
  EXPECT_LE(runtimes.size(), 1u) << libraries;
  EXPECT_EQ(runtimes.empty(), !kHasOpenMp && !kHasOneDnn) << libraries;
}

struct PluginRun {
  int right = 0, most_threads = 0, threads_after = 0;
};

PluginRun run_plugin(int cycles, bool shuts_down) {
  Program host({GUEST_PLUGIN_HOST, GUEST_PLUGIN, std::to_string(cycles), shuts_down ? "1" : "0"});
  EXPECT_EQ(host.wait(60), 0) << host.err();
  EXPECT_EQ(host.err(), "");
  PluginRun run;
  std::istringstream(host.out()) >> run.right >> run.most_threads >> run.threads_after;
  return run;
}

// Threads that outlive the code they run: microsoft/onnxruntime#21461.
TEST(Plugin, LeavesNoThreadAfterShutdown) {
  if (LOCKSTEP_INSTRUMENTED) GTEST_SKIP() << "the host of the plugin has no sanitizer's runtime";
  const PluginRun run = run_plugin(50, true);
  EXPECT_EQ(run.right, 50);
  EXPECT_EQ(run.most_threads, kHasOpenMp ? 4 : 1);
  EXPECT_EQ(run.threads_after, 1);
}

TEST(Plugin, MayBeUnloadedWithoutShutdown) {
  if (LOCKSTEP_INSTRUMENTED) GTEST_SKIP() << "the host of the plugin has no sanitizer's runtime";
  EXPECT_EQ(run_plugin(10, false).right, 10);
}

#ifdef LOCKSTEP_TRAINER

// Files below `folder` that this user owns.
std::vector<std::string> files_of(uid_t user, const std::filesystem::path& folder) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (std::filesystem::recursive_directory_iterator
           it(folder, std::filesystem::directory_options::skip_permission_denied, ignored),
       end;
       it != end; it.increment(ignored)) {
    struct stat status {};
    if (::lstat(it->path().c_str(), &status) == 0 && status.st_uid == user)
      files.push_back(it->path());
  }
  return files;
}

// Containers with no home, no name for the user and a read-only place: pytorch/pytorch#74415.
TEST(Trainer, NeedsNoHomeNoUserNameAndNoWritablePlace) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t kUser = 12345;
  const TempFolder folder;
  const std::filesystem::path root = folder.path(), here = root / "here", runs = root / "runs";
  std::filesystem::create_directories(here);
  std::filesystem::create_directories(runs);
  const std::string trainer = root / "trainer";
  std::filesystem::copy_file(LOCKSTEP_TRAINER, trainer);  // that the user can reach it
  for (const auto& path : {root, here}) ASSERT_EQ(::chmod(path.c_str(), 0555), 0);
  ASSERT_EQ(::chmod(trainer.c_str(), 0555), 0);
  ASSERT_EQ(::chown(runs.c_str(), kUser, kUser), 0);
  for (const char* home : {"-uHOME", "HOME=/nonexistent"}) {
    const std::string experiment = home[0] == '-' ? "without_home" : "with_wrong_home";
    Program program({"setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "env", home,
                     "sh", "-c",
                     "cd '" + here.string() + "' && exec '" + trainer +
                         "' --model small_net -e 1 -w 0 -b 64 -n " + experiment + " -p '" +
                         runs.string() + "'"});
    EXPECT_EQ(program.wait(90), 0) << program.err() << program.out();
    EXPECT_EQ(program.err(), "");
    EXPECT_FALSE(files_of(kUser, runs / experiment).empty());
  }
  EXPECT_TRUE(std::filesystem::is_empty(here));
  for (const char* place : {"/tmp", "/var/tmp", "/dev/shm"})
    for (const std::string& file : files_of(kUser, place))
      EXPECT_EQ(file.rfind(runs.string(), 0), 0u) << file << " was left behind";
}

#endif

}  // namespace
}  // namespace lockstep::testing
