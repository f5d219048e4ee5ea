// A training job as a user starts it: lockstep-run and lockstep-train as processes of their own.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "e2e/training/job.h"
#include "support/message.h"
#include "support/temp_folder.h"

namespace lockstep::testing {

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
