#include "signal_pipe.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace lockstep::run {
namespace {

// A handler has no other way to find its pipe.
std::atomic<int> write_end = -1;

void on_signal(int signal) {
  const int saved = errno;
  const auto byte = static_cast<unsigned char>(signal);
  // A full pipe means 64 KiB of unread signals: one more adds nothing.
  [[maybe_unused]] const ssize_t n = ::write(write_end.load(), &byte, 1);
  errno = saved;
}

}  // namespace

int install_signal_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
  write_end = ends[1];
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0) return -1;
    if (action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    if (::sigaction(signal, &action, nullptr) != 0) return -1;
  }
  return ends[0];
}

}  // namespace lockstep::run
