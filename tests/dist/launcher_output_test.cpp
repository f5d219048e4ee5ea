// What lockstep-run does with its workers' output: files, prefixes, filters, slow readers.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "dist/launch_job.h"

namespace lockstep::dist {
namespace {

namespace fs = std::filesystem;

std::vector<string> files_below(const fs::path& folder) {
  std::vector<string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    fs::path rest;
    const fs::path relative = fs::relative(entry.path(), folder);
    for (auto part = std::next(relative.begin()); part != relative.end(); ++part) rest /= *part;
    found.push_back(rest.string() + "=" + text_of(entry.path()));
  }
  std::ranges::sort(found);
  return found;
}

TEST(Launcher, TeeAndRedirectsWriteFiles) {
  TempFolder folder;
  Program run(job({"--nproc-per-node=3", "--tee", "0:1,1:2", "-r", "1:1,2:3", "--log-dir",
                   folder.path(), "--rdzv-id=exp"},
                  shell("echo out$RANK; echo err$RANK >&2; printf last")));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(holds(folder.entries().at(0), "exp_"));
  EXPECT_EQ(
      files_below(folder.path()),
      (std::vector<string>{"attempt_0/0/stdout.log=out0\nlast", "attempt_0/1/stderr.log=err1\n",
                           "attempt_0/1/stdout.log=out1\nlast", "attempt_0/2/stderr.log=err2\n",
                           "attempt_0/2/stdout.log=out2\nlast"}));
  EXPECT_EQ(run.out(), "[default0]:out0\n[default0]:last\n");
  EXPECT_TRUE(holds(run.err(), "[default1]:err1\n")) << run.err();
  EXPECT_TRUE(holds(run.err(), "err0\n"));
  EXPECT_FALSE(holds(run.err(), "err2"));
}

TEST(Launcher, TheFilterHidesOtherRanksOnTheConsoleOnly) {
  TempFolder folder;
  Program run(
      job({"--nproc-per-node=3", "--local-ranks-filter=1", "--tee=2:3", "--log-dir", folder.path()},
          shell("echo out$RANK")));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), "out1\n");
  EXPECT_EQ(files_below(folder.path()),
            (std::vector<string>{"attempt_0/2/stderr.log=", "attempt_0/2/stdout.log=out2\n"}));
}

TEST(Launcher, AConsoleThatNobodyReadsDoesNotHoldUpTheEnd) {
  TempFolder folder;
  // The inner launcher's stdout is a pipe whose reader sleeps.
  const string inner =
      string(LOCKSTEP_RUN_PROGRAM) + " --tee=1 --log-dir=" + folder.path() +
      " sh -c 'i=0; while [ $i -lt 1500 ]; do echo 0123456789012345678901234567890123456789; "
      "i=$((i+1)); done; exit 9'; echo $? > " +
      folder.path() + "/code";
  Program run({"sh", "-c", "{ " + inner + "; } | sleep 3"});
  EXPECT_TRUE(eventually([&] { return text_of(folder / "code") == "9\n"; }));
  EXPECT_LT(run.seconds(), 2.9);
  run.wait();
}

}  // namespace
}  // namespace lockstep::dist
