// What reductions have to give, written without regard to speed: the tree as the header of
// reduction_tree.h defines it, one element at a time.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "lockstep/core/dispatch.h"
#include "lockstep/dist/process_group.h"

namespace lockstep::testing {

template <class Acc>
Acc combine(dist::ReduceOp op, Acc a, Acc b) {
  if constexpr (std::is_integral_v<Acc>) {
    using U = std::make_unsigned_t<Acc>;
    switch (op) {
      case dist::ReduceOp::kSum:
        return static_cast<Acc>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
      case dist::ReduceOp::kProduct:
        return static_cast<Acc>(
            static_cast<U>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)));
      case dist::ReduceOp::kMin:
        return a < b ? a : b;
      case dist::ReduceOp::kMax:
        return a > b ? a : b;
    }
  } else {
    switch (op) {
      case dist::ReduceOp::kSum:
        return a + b;
      case dist::ReduceOp::kProduct:
        return a * b;
      case dist::ReduceOp::kMin:
        return std::isnan(a) || a < b ? a : b;
      case dist::ReduceOp::kMax:
        return std::isnan(a) || a > b ? a : b;
    }
  }
  return a;
}

template <class Acc>
Acc tree(dist::ReduceOp op, const std::vector<Acc>& g, std::size_t lo, std::size_t hi) {
  if (hi - lo == 1) return g[lo];
  std::size_t half = 1;
  while (half * 2 < hi - lo) half *= 2;
  return combine<Acc>(op, tree(op, g, lo, lo + half), tree(op, g, lo + half, hi));
}

// One element of each rank to the element of the result.
template <class T>
T reduce_element(dist::ReduceOp op, const std::vector<T>& g) {
  using Acc = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float,
                                 std::conditional_t<std::is_same_v<T, bool>, int, T>>;
  std::vector<Acc> values;
  for (const T& value : g) values.push_back(static_cast<Acc>(value));
  return static_cast<T>(tree<Acc>(op, values, 0, values.size()));
}

// Element i of rank r: small integers, exact in every dtype and op up to 16 ranks (but for u8 and
// bool, which wrap or saturate alike everywhere).
template <class T>
T exact_value(dist::ReduceOp op, int r, std::int64_t i) {
  const auto mix =
      static_cast<std::uint64_t>(r * 7 + 3) * 2654435761u + static_cast<std::uint64_t>(i) * 40503u;
  const auto small = static_cast<int>((mix >> 7) % 5);
  if constexpr (std::is_same_v<T, bool>) return small < 2;
  if (op == dist::ReduceOp::kProduct) return static_cast<T>(static_cast<float>(1 + small % 2));
  return static_cast<T>(static_cast<float>(small));
}

}  // namespace lockstep::testing
