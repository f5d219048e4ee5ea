// Philox4x32-10, the counter-based random generator: a pure function from (seed, stream, position)
// to 128 bits, so any thread, rank or device computes any number of a sequence by itself.
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// The bijection itself: ten rounds over the counter under the key.
constexpr PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) {
  constexpr std::uint32_t kMultiplierA = 0xD2511F53, kMultiplierB = 0xCD9E8D57;
  constexpr std::uint32_t kWeylA = 0x9E3779B9, kWeylB = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{kMultiplierA} * counter[0];
    const std::uint64_t b = std::uint64_t{kMultiplierB} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + kWeylA, key[1] + kWeylB};
  }
  return counter;
}

// A piece of one random sequence. The key is the seed; the counter's low half is the position, its
// high half the stream: different streams of one seed never overlap.
struct PhiloxSequence {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t offset = 0;  // of the piece's first block, in blocks of four numbers

  // Numbers 4*block .. 4*block+3 of the piece.
  constexpr PhiloxCounter block(std::uint64_t block) const {
    const std::uint64_t position = offset + block;
    return philox4x32_10(
        {static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32),
         static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
        {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  }

  // Number i of the piece, 32 bits. A loop over many takes whole blocks instead.
  constexpr std::uint32_t at(std::uint64_t i) const { return block(i / 4)[i % 4]; }
};

// 32 random bits as a float in [0, 1): the top 24 bits, so that every value is exact.
constexpr float philox_uniform(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

}  // namespace lockstep
