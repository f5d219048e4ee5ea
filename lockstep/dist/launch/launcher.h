// Runs a job's workers on this node: starts them, watches them, ends them all when one fails.
#pragma once

#include <functional>
#include <string>

#include "lockstep/dist/launch/launch_options.h"

namespace lockstep::dist {

struct LaunchResult {
  int exit_code = 0;       // 0, the failed worker's code, or 128 + its signal
  std::string root_cause;  // the first failure by time: "rank 2 signal 9 (SIGKILL)"; "" if none
  int restarts = 0;
};

// Called with single lines without a line end: what the launcher has to tell its user.
using Announce = std::function<void(const std::string& line)>;

// Blocks until the job is over. Node 0 serves the store itself, so that the port of the workers'
// MASTER_PORT is taken from the start and rank 0 connects like all others: PortInUseError if it is
// not free, before any worker starts. `signals` (-1: none) is a descriptor from which bytes are
// read, each a signal's number: SIGINT, SIGTERM, SIGHUP, SIGQUIT stop the job (passed on, SIGKILL
// after stop_grace or at the second one), others are only passed on. Nothing of the job is left
// when it returns. Call it from a thread that stays (see ChildProcess). The thread's environment is
// the workers'.
LaunchResult launch(const LaunchOptions& options, int signals, const Announce& announce);

}  // namespace lockstep::dist
