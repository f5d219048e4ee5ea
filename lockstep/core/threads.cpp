#include "lockstep/core/threads.h"

#include <algorithm>
#include <exception>
#include <mutex>

#include "lockstep/core/check.h"
#include "lockstep/core/config.h"

#if LOCKSTEP_WITH_OPENMP
#include <omp.h>
#else
// Other libraries in the process may bring an OpenMP runtime although this build uses none.
extern "C" {
[[gnu::weak]] void omp_set_num_threads(int);
[[gnu::weak]] int omp_get_max_threads();
}
#endif

namespace lockstep {
namespace {

thread_local int thread_setting = 0;  // 0: the default
thread_local bool deterministic_setting = true;

}  // namespace

void set_num_threads(int n) {
  LOCKSTEP_CHECK(n >= 0, "set_num_threads: expected 0 (default) or more but got {}", n);
  thread_setting = n;
}

void set_deterministic(bool on) { deterministic_setting = on; }
bool deterministic() { return deterministic_setting; }

#if LOCKSTEP_WITH_OPENMP

int num_threads() { return thread_setting > 0 ? thread_setting : omp_get_max_threads(); }

bool in_parallel_region() { return omp_in_parallel() != 0; }

void shutdown() {
  if (!omp_in_parallel()) omp_pause_resource_all(omp_pause_hard);
}

ThreadLimit::ThreadLimit(int n) : before_(omp_get_max_threads()) { omp_set_num_threads(n); }
ThreadLimit::~ThreadLimit() { omp_set_num_threads(before_); }

void internal::parallel_ranges(std::int64_t n, std::int64_t grain,
                               void (*call)(void*, std::int64_t, std::int64_t), void* f) {
  if (n <= 0) return;
  grain = std::max<std::int64_t>(grain, 1);
  const std::int64_t ranges = (n + grain - 1) / grain;
  const int threads = static_cast<int>(std::min<std::int64_t>(num_threads(), ranges));
  if (threads <= 1 || omp_in_parallel()) return call(f, 0, n);
  std::exception_ptr failure;
  std::mutex mutex;
#pragma omp parallel num_threads(threads)
  {
    // The runtime may grant fewer threads than asked for.
    const std::int64_t share =
        std::max(grain, (n + omp_get_num_threads() - 1) / omp_get_num_threads());
    const std::int64_t begin = std::min(n, share * omp_get_thread_num());
    const std::int64_t end = std::min(n, begin + share);
    try {
      if (begin < end) call(f, begin, end);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

#else

int num_threads() { return 1; }
bool in_parallel_region() { return false; }
void shutdown() {}

ThreadLimit::ThreadLimit(int n) : before_(omp_get_max_threads ? omp_get_max_threads() : 0) {
  if (omp_set_num_threads) omp_set_num_threads(n);
}
ThreadLimit::~ThreadLimit() {
  if (omp_set_num_threads) omp_set_num_threads(before_);
}

void internal::parallel_ranges(std::int64_t n, std::int64_t,
                               void (*call)(void*, std::int64_t, std::int64_t), void* f) {
  if (n > 0) call(f, 0, n);
}

#endif

}  // namespace lockstep
