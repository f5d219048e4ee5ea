// lockstep-run with its flags and a command, as tests start it.
#pragma once

#include <string>
#include <vector>

#include "dist/run_program.h"

namespace lockstep::dist {

using lockstep::testing::TempFolder;
using std::string;

inline std::vector<string> job(std::vector<string> flags, std::vector<string> command) {
  std::vector<string> all = {LOCKSTEP_RUN_PROGRAM};
  all.insert(all.end(), flags.begin(), flags.end());
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

inline std::vector<string> worker(const string& mode, const string& argument = "") {
  return {LOCKSTEP_LAUNCH_WORKER, mode, argument};
}

inline std::vector<string> shell(const string& script) { return {"sh", "-c", script}; }

inline bool holds(const string& text, const string& part) {
  return text.find(part) != string::npos;
}

}  // namespace lockstep::dist
