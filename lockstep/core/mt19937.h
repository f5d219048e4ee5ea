// The Mersenne Twister with its state open for saving; the same numbers as std::mt19937.
// Source: Matsumoto, Nishimura, "Mersenne twister" (ACM TOMACS 8, 1998), 2002 initialisation.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

class Mt19937 {
 public:
  static constexpr int kStateSize = 624;

  // As PyTorch, takes the low 32 bits of a 64-bit seed.
  explicit Mt19937(std::uint64_t seed = 5489) {
    state_[0] = static_cast<std::uint32_t>(seed);
    for (std::uint32_t i = 1; i < kStateSize; ++i)
      state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
  // `position` in 0..kStateSize: how many numbers of the current state were given out.
  Mt19937(const std::array<std::uint32_t, kStateSize>& state, int position)
      : state_(state), position_(position) {}

  std::uint32_t operator()() {
    if (position_ == kStateSize) twist();
    std::uint32_t y = state_[position_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9D2C5680U;
    y ^= (y << 15) & 0xEFC60000U;
    return y ^ (y >> 18);
  }

  const std::array<std::uint32_t, kStateSize>& state() const { return state_; }
  int position() const { return position_; }

 private:
  void twist() {
    constexpr int kShift = 397;
    const auto mix = [](std::uint32_t u, std::uint32_t v) {
      return (((u & 0x80000000U) | (v & 0x7FFFFFFFU)) >> 1) ^ ((v & 1U) ? 0x9908B0DFU : 0U);
    };
    int i = 0;
    for (; i < kStateSize - kShift; ++i)
      state_[i] = state_[i + kShift] ^ mix(state_[i], state_[i + 1]);
    for (; i < kStateSize - 1; ++i)
      state_[i] = state_[i + kShift - kStateSize] ^ mix(state_[i], state_[i + 1]);
    state_[i] = state_[kShift - 1] ^ mix(state_[i], state_[0]);
    position_ = 0;
  }

  std::array<std::uint32_t, kStateSize> state_;
  int position_ = kStateSize;
};

}  // namespace lockstep
