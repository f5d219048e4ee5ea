// Threads inside one rank: how many the calling thread's loops use, and the loop itself.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace lockstep {

// Threads that parallel loops started by the calling thread use (every thread has its own setting,
// so that ranks that are threads can differ). 0 brings back the default: OMP_NUM_THREADS, else the
// cores this process may run on. A build without OpenMP always has 1. Throws Error if negative.
void set_num_threads(int n);
int num_threads();

// Whether results may depend on the number of threads: in deterministic mode (per calling thread,
// on at the start) every op gives the same bits for any number. Off, a library may split sums by
// thread, which moves results by about 1e-6 relative.
void set_deterministic(bool on);
bool deterministic();

// Whether a loop started now would run on the calling thread alone because it already is inside an
// OpenMP parallel region, the library's or the host program's.
bool in_parallel_region();

// Ends the worker threads of the calling thread's pool; the next loop starts new ones. To be called
// before the library is unloaded. Other threads' pools end with their threads.
void shutdown();

// While it lives, OpenMP loops that other libraries start from the calling thread use at most n
// threads.
class ThreadLimit {
 public:
  explicit ThreadLimit(int n);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

namespace internal {
void parallel_ranges(std::int64_t n, std::int64_t grain,
                     void (*call)(void*, std::int64_t, std::int64_t), void* f);
}

// Calls f(begin, end) for consecutive ranges that cover [0, n), each but the last at least `grain`
// long, on up to num_threads() threads; on the calling thread alone where there is one range or
// in_parallel_region(). Where ranges begin depends on the number of threads, so f must not sum
// across the elements of its range. The first exception of any f is thrown after all have ended.
template <class F>
void parallel_for(std::int64_t n, std::int64_t grain, F&& f) {
  using Body = std::remove_reference_t<F>;
  internal::parallel_ranges(
      n, grain,
      [](void* body, std::int64_t begin, std::int64_t end) {
        (*static_cast<Body*>(body))(begin, end);
      },
      const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

}  // namespace lockstep
