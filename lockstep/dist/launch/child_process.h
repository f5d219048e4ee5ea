// A worker process: started in a process group of its own, dies with its parent.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "lockstep/dist/socket.h"

namespace lockstep::dist {

struct ChildSpec {
  std::vector<std::string> command;      // found through PATH
  std::vector<std::string> environment;  // NAME=value
  int stdout_fd = 1;
  int stderr_fd = 2;
};

// How a process ended.
struct ExitStatus {
  int code = 0;    // if it exited
  int signal = 0;  // if a signal ended it

  bool success() const { return code == 0 && signal == 0; }
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
  std::string str() const;  // "signal 9 (SIGKILL)" or "exit code 3"
};

// The kernel kills the child when the thread that started it ends (Linux ties this to the thread),
// so start children from one that stays. Move-only; destruction kills and reaps.
class ChildProcess {
 public:
  // Error if the program can't be started; names it. Standard input is inherited unless it is a
  // terminal: a background group that reads one would be stopped.
  static ChildProcess start(const ChildSpec& spec);

  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  bool running() const { return pid_ > 0 && !status_; }
  // Readable once the process has ended; -1 where the kernel has no pidfd.
  int wake_fd() const { return pidfd_.get(); }

  // Reaps if it has ended, without waiting. A failed one takes the rest of its group with it.
  std::optional<ExitStatus> poll();

  // To the whole process group; nothing if the leader has been reaped.
  void signal_group(int signal) const;

 private:
  void end() noexcept;

  pid_t pid_ = -1;
  FileDescriptor pidfd_;
  std::optional<ExitStatus> status_;
};

}  // namespace lockstep::dist
