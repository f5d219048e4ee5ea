// The random generator of one thread: PyTorch's mt19937 numbers for initialisation, shuffles and
// permutations (same seed, same numbers), and Philox sequences for dropout masks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/core/mt19937.h"
#include "lockstep/core/philox.h"
#include "lockstep/core/tensor.h"

namespace lockstep {

// Not for use by two threads at once: each rank-thread owns its generators.
class Generator {
 public:
  static constexpr std::uint64_t kDefaultSeed = 67280421310721;  // PyTorch's

  explicit Generator(std::uint64_t seed = kDefaultSeed) : engine_(seed), seed_(seed) {}

  // Restarts both kinds of numbers from this seed, as torch.manual_seed. The stream stays.
  void manual_seed(std::uint64_t seed);
  std::uint64_t seed() const { return seed_; }

  // Philox sequences of different streams differ; mt19937 draws do not depend on the stream. So
  // ranks with one seed and stream = rank start from the same weights but drop different units.
  void set_stream(std::uint64_t stream) { stream_ = stream; }
  std::uint64_t stream() const { return stream_; }

  std::uint32_t random() { return engine_(); }
  std::uint64_t random64();  // two draws, the first is the high half

  // In [from, to): x * (to - from) + from with one rounding, x of 24 (float) or 53 (double) bits.
  float uniform_f32(float from = 0, float to = 1);
  double uniform_f64(double from = 0, double to = 1);
  // Box-Muller in double; every second call returns the kept other half of a pair.
  double normal(double mean = 0, double std = 1);
  // True with probability p. Errors: p outside [0, 1].
  bool bernoulli(double p = 0.5);
  // In [low, high), as Tensor.random_(low, high): 32 bits modulo the range, 64 bits from 2^28 on.
  // Errors: high <= low.
  std::int64_t randint(std::int64_t low, std::int64_t high);
  // A permutation of 0 .. n-1, torch.randperm's. Errors: n < 0.
  std::vector<std::int64_t> randperm(std::int64_t n);

  // A fresh piece of this generator's Philox sequence with at least `count` numbers.
  PhiloxSequence philox(std::uint64_t count);

  // The whole state (both kinds of numbers, seed, stream) as a u8 tensor; a generator set to it
  // continues with the same bits. set_state errors: dtype, size or contents that state() can't
  // have written; the generator is unchanged then.
  Tensor state() const;
  void set_state(const Tensor& state);

 private:
  Mt19937 engine_;
  std::optional<double> next_normal_;
  std::uint64_t seed_;
  std::uint64_t stream_ = 0;
  std::uint64_t philox_offset_ = 0;
};

// The calling thread's own generator; starts with kDefaultSeed and stream 0.
Generator& default_generator();
// default_generator().manual_seed(seed): the calling thread only.
void manual_seed(std::uint64_t seed);

}  // namespace lockstep
