// Threads of the library inside somebody's program.
#pragma once

#include <functional>
#include <thread>

namespace lockstep {

// Starts a thread that takes no signals: those are for the threads of the program we live in.
std::thread start_quiet_thread(std::function<void()> body);

}  // namespace lockstep
