// lockstep-run: starts the ranks of a job on this node. See lockstep/dist/launch/launcher.h.
#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <cstring>

#include "command_line.h"
#include "lockstep/core/log.h"
#include "lockstep/dist/launch/launcher.h"
#include "signal_pipe.h"
#include "standard_streams.h"

namespace {

void say(std::string_view line) {
  std::fprintf(stderr, "lockstep-run: %.*s\n", static_cast<int>(line.size()), line.data());
}

}  // namespace

int main(int argc, char** argv) {
  lockstep::apps::open_standard_streams();
  int exit_code = 0;
  const auto options = lockstep::run::parse_command_line(argc, argv, exit_code);
  if (!options) return exit_code;
  lockstep::set_log_sink([](lockstep::LogLevel level, std::string_view message) {
    if (level >= lockstep::LogLevel::kWarning) say(message);
  });
  const int signals = lockstep::run::install_signal_pipe();
  if (signals < 0) {
    say(std::string("can't handle signals: ") + std::strerror(errno));
    return 1;
  }
  ::signal(SIGPIPE, SIG_IGN);                   // a console that has gone must not end the job
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);  // orphans of workers come to us, to be ended
  try {
    // The root cause is announced when it happens.
    return lockstep::dist::launch(*options, signals, [](const std::string& line) { say(line); })
        .exit_code;
  } catch (const std::exception& e) {
    say(e.what());
    return 1;
  }
}
