// Sleeping on a 32-bit word that may lie in memory shared with other processes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace lockstep::dist {

// Returns when woken, after `limit`, at a signal, or at once if *word != expected: callers loop.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::chrono::nanoseconds limit) noexcept;
void futex_wake_all(const std::atomic<std::uint32_t>& word) noexcept;

// For the body of a spin loop.
inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace lockstep::dist
