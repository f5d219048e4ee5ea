// What softmax, log-softmax and cross-entropy do to one row. Internal: not for embedders.
#pragma once

#include <limits>

#include "lockstep/kernels/simd_math.h"

namespace lockstep::kernels {

// max_j x_j; -inf for an empty row. NaNs may be passed over: the sum below brings them back.
template <class T>
LOCKSTEP_SIMD_FN Accumulator<T> row_max(const T* x, std::int64_t n) {
  constexpr Accumulator<T> kLowest = -std::numeric_limits<Accumulator<T>>::infinity();
  Lanes<T> m = Lanes<T>{} + kLowest;
  for_each_vector<T>(n, [&](std::int64_t i, std::int64_t k) LOCKSTEP_SIMD {
    const Lanes<T> v = load_at(x, i, k, kLowest);
    m = v > m ? v : m;
  });
  Accumulator<T> result = m[0];
  for (int i = 1; i < kLanes<T>; ++i) result = m[i] > result ? m[i] : result;
  return result;
}

// sum_j exp(x_j - max)
template <class T>
LOCKSTEP_SIMD_FN Accumulator<T> row_exp_sum(const T* x, std::int64_t n, Accumulator<T> max) {
  constexpr Accumulator<T> kLowest = -std::numeric_limits<Accumulator<T>>::infinity();
  return sum_row<T>(n, [&](std::int64_t i, std::int64_t k)
                           LOCKSTEP_SIMD { return exp_lanes(load_at(x, i, k, kLowest) - max); });
}

}  // namespace lockstep::kernels
