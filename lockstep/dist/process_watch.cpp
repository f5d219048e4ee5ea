#include "lockstep/dist/process_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace lockstep::dist {
namespace {

// The letter after the command's name in /proc/<pid>/stat; 0 if there is none.
char stat_letter(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[512];
  ssize_t n;
  do n = read(fd, text, sizeof(text));
  while (n < 0 && errno == EINTR);
  close(fd);
  if (n <= 0) return 0;
  const std::string line(text, static_cast<std::size_t>(n));
  const std::size_t end = line.rfind(')');
  return end != std::string::npos && end + 2 < line.size() ? line[end + 2] : 0;
}

}  // namespace

ProcessWatch::ProcessWatch(pid_t pid) : pid_(pid) {
#ifdef SYS_pidfd_open
  if (pid > 0) fd_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
#endif
}

ProcessWatch::~ProcessWatch() {
  if (fd_ >= 0) close(fd_);
}

ProcessWatch::ProcessWatch(ProcessWatch&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), fd_(std::exchange(other.fd_, -1)) {}

ProcessWatch& ProcessWatch::operator=(ProcessWatch&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(fd_, other.fd_);
  return *this;
}

bool ProcessWatch::ended() const {
  if (pid_ <= 0) return false;
  if (fd_ >= 0) {
    pollfd poll_fd{fd_, POLLIN, 0};
    return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLIN) != 0;
  }
  if (kill(pid_, 0) != 0 && errno == ESRCH) return true;
  const char letter = stat_letter(pid_);
  return letter == 'Z' || letter == 'X';
}

std::string ProcessWatch::state() const {
  if (ended()) return "ended";
  switch (stat_letter(pid_)) {
    case 'R':
      return "running";
    case 'S':
    case 'I':
      return "sleeping";
    case 'D':
      return "waiting for a device";
    case 'T':
      return "stopped";
    case 't':
      return "stopped by a debugger";
    case 'Z':
    case 'X':
      return "ended";
    default:
      return "unknown";
  }
}

}  // namespace lockstep::dist
