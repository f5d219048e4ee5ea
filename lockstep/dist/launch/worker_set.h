// The workers of one node in one attempt: started together, ended together.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/dist/launch/child_process.h"
#include "lockstep/dist/launch/launch_options.h"
#include "lockstep/dist/launch/output_pump.h"
#include "lockstep/dist/launch/worker_environment.h"

namespace lockstep::dist {

struct WorkerFailure {
  int rank = 0;  // global
  int pid = 0;
  ExitStatus status;
};

class WorkerSet {
 public:
  // Starts all; if one can't be started, ends the others and throws. `log_dir` is where redirected
  // and copied output goes (<log_dir>/attempt_<n>/<local_rank>/stdout.log, stderr.log).
  WorkerSet(const LaunchOptions& options, const RoundFacts& facts, const std::string& log_dir);

  bool any_running() const;

  // Reaps those that have ended. The failures found, oldest first as far as that can be told: of
  // several found at once, a signal's victim comes before one that left by itself.
  std::vector<WorkerFailure> sweep();

  // Ends on their own accord by `deadline`: SIGTERM or the given signal now (and SIGCONT, for one
  // that was stopped), SIGKILL then.
  void begin_end(int signal, Duration grace);
  bool ending() const { return kill_at_.has_value(); }
  void kill_now();
  // Carries out the SIGKILL when its time has come.
  void keep_time();
  void forward(int signal);

  // Blocks until a worker ends, fd is readable, or the timeout passes.
  void wait(int fd, Duration timeout) const;

  // After the last worker: what their descendants still write, at most so long.
  void finish_output(Duration patience);

 private:
  ChildProcess start(const LaunchOptions& options, const RoundFacts& facts,
                     const std::string& log_dir, int local_rank);

  int first_rank_;
  std::unique_ptr<OutputPump> pump_;  // null if no stream needs it
  std::vector<ChildProcess> workers_;
  std::optional<TimePoint> kill_at_;
};

}  // namespace lockstep::dist
