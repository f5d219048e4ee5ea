#include "stop_signal.h"

#include <csignal>

namespace lockstep::apps {
namespace {

std::atomic<bool> stop_flag = false;
std::atomic<int> received = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_signal(int number) {
  received = number;
  stop_flag = true;
}

}  // namespace

const std::atomic<bool>& install_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return stop_flag;
}

int stop_signal() { return received; }

}  // namespace lockstep::apps
