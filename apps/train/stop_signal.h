// Ctrl-C and SIGTERM as a wish to stop that the training loop reads.
#pragma once

#include <atomic>

namespace lockstep::apps {

// Installs the handlers. The first signal sets the flag, a second one ends the process at once.
const std::atomic<bool>& install_stop_signals();
// The signal that came; 0 if none.
int stop_signal();

}  // namespace lockstep::apps
