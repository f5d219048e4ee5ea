// Timing calls that may be asynchronous: the clock stops when the last one is done, not when it was
// started.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

namespace lockstep::bench {

// Seconds for `calls` of launch(), each of which returns a pointer to something with wait(); after
// one that is not timed, as in time_calls.
template <class Launch>
double time_until_done(int calls, Launch&& launch) {
  launch()->wait();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<decltype(launch())> works;
  works.reserve(static_cast<std::size_t>(calls));
  for (int i = 0; i < calls; ++i) works.push_back(launch());
  for (auto& work : works) work->wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Seconds for `calls` of a function that returns when done. One call before them is not timed: it
// brings back what a measurement in between has put out of the caches.
template <class Call>
double time_calls(int calls, Call&& call) {
  call();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace lockstep::bench
