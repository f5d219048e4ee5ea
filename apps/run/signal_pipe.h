// Turns the program's signals into bytes that the launcher's poll sees.
#pragma once

namespace lockstep::run {

// Handles SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 from now on, except those that were
// ignored (nohup). Returns the descriptor from which each signal's number can be read as a byte, or
// -1 with errno set.
int install_signal_pipe();

}  // namespace lockstep::run
