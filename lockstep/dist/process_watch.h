// ProcessWatch: notices that another process of this host has ended.
#pragma once

#include <sys/types.h>

#include <string>

namespace lockstep::dist {

// Holds on to the process, not to its number, which the system may give to another one.
class ProcessWatch {
 public:
  ProcessWatch() = default;  // watches nothing; never ended
  explicit ProcessWatch(pid_t pid);
  ~ProcessWatch();
  ProcessWatch(ProcessWatch&& other) noexcept;
  ProcessWatch& operator=(ProcessWatch&& other) noexcept;

  pid_t pid() const { return pid_; }
  // True once it has exited or was killed, reaped or not.
  bool ended() const;
  // "running", "sleeping", "stopped", "ended", … for error messages; "unknown" where /proc does not
  // tell.
  std::string state() const;

 private:
  pid_t pid_ = 0;
  int fd_ = -1;  // a pidfd; -1 where the kernel has none
};

}  // namespace lockstep::dist
