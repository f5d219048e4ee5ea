// A training job as a user starts it: lockstep-run and lockstep-train as processes of their own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "dist/run_program.h"
#include "lockstep/dist/launch/leftovers.h"
#include "support/message.h"
#include "support/temp_folder.h"

namespace lockstep::testing {

using Words = std::vector<std::string>;

inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Where a run named `run` below the folder keeps its files.
struct RunFiles {
  std::string path;
  std::string best() const { return path + "/best.safetensors"; }
  std::string last() const { return path + "/last.safetensors"; }
  std::string log() const { return path + "/log.jsonl"; }
  std::string summary() const { return path + "/summary.json"; }
};

inline RunFiles run_files(const TempFolder& folder, const std::string& run = "run") {
  return {folder / run};
}

// A few steps of a small model on the embedded digits: about a fifth of a second.
inline Words trainer(const TempFolder& folder, const Words& flags = {}) {
  return Words{LOCKSTEP_TRAINER,
               "--model",
               "mlp",
               "-b",
               "64",
               "-e",
               "3",
               "-l",
               "0.1",
               "-w",
               "1",
               "-t",
               "linear",
               "-n",
               "run",
               "--workers=1",
               "-p",
               folder.path()} +
         flags;
}

// `command` on that many ranks; 0: alone, without a launcher.
inline Words on_ranks(int ranks, const Words& command, const Words& launcher_flags = {}) {
  if (ranks == 0) return command;
  return Words{LOCKSTEP_RUN_PROGRAM, "--nproc-per-node", std::to_string(ranks)} + launcher_flags +
         command;
}

// Each rank runs a shell line in which "$@" is the command.
inline Words by_rank(const std::string& line, const Words& command) {
  return Words{"sh", "-c", line, "sh"} + command;
}

// A started job, marked so that whatever it leaves behind can be found.
class Job {
 public:
  explicit Job(const Words& command, const Words& environment = {})
      : mark_("LOCKSTEP_TEST_JOB=" + std::to_string(::getpid()) + "-" +
              std::to_string(next_number())),
        program_(command, environment + Words{mark_, "OMP_NUM_THREADS=1"}) {}
  ~Job() {
    if (!ended_) program_.send(SIGKILL);
    EXPECT_EQ(
        dist::end_leftover_processes(mark_, false, dist::Duration(2000), dist::Duration(5000)), 0)
        << "processes were left behind";
  }

  // The exit code; also checks that nothing of the job is left.
  int wait(double limit_seconds = 60) {
    const int code = program_.wait(limit_seconds);
    ended_ = true;
    // Workers of a launcher that was killed itself need a moment to die.
    EXPECT_TRUE(dist::eventually([&] {
      return dist::find_leftover_processes(mark_, false).empty();
    })) << "processes were left behind";
    return code;
  }

  double seconds() const { return program_.seconds(); }
  void send(int signal) const { program_.send(signal); }
  std::string out() const { return program_.out(); }
  std::string err() const { return program_.err(); }
  pid_t pid() const { return program_.pid(); }

  // What the trainer's processes said on stderr, line by line.
  Words complaints() const {
    Words lines;
    std::istringstream text(err());
    for (std::string line; std::getline(text, line);)
      if (line.rfind("lockstep-run: ", 0) != 0) lines.push_back(line);
    return lines;
  }

  // The process of a rank; 0 if there is none (yet).
  pid_t rank_pid(int rank) const {
    for (const pid_t pid : dist::find_leftover_processes(mark_, false)) {
      const std::string environment = dist::text_of("/proc/" + std::to_string(pid) + "/environ");
      const std::string entry = "RANK=" + std::to_string(rank) + '\0';
      if (environment.rfind(entry, 0) == 0 || environment.find('\0' + entry) != std::string::npos)
        return pid;
    }
    return 0;
  }

 private:
  static int next_number() {
    static std::atomic<int> number = 0;
    return ++number;
  }

  std::string mark_;
  dist::Program program_;
  bool ended_ = false;
};

// Runs to its end, which has to be a good one.
inline std::string run_well(const Words& command, double limit_seconds = 60) {
  Job job(command);
  EXPECT_EQ(job.wait(limit_seconds), 0) << job.out() << job.err();
  return job.out();
}

// Waits until `path` has been replaced `times` times since the call; false if the job ends first.
inline bool wait_for_saves(const Job& job, const std::string& path, int times) {
  ino_t seen = 0;
  for (int n = 0; n < 20000 && dist::is_alive(job.pid()); ++n) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && status.st_ino != seen) {
      seen = status.st_ino;
      if (--times == 0) return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

inline std::vector<nlohmann::json> json_lines(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(read_bytes(path));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace lockstep::testing
