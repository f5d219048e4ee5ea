// The body of reduce_tree, compiled once per instruction set: reduce_{baseline,avx2,avx512}.cpp
// include it. Everything has internal linkage and calls no library code, so that no function
// compiled for wide vectors can be picked by the linker for another file.
#pragma once

#include <cstdint>

#include "lockstep/dist/reduce.h"
#include "lockstep/dist/reduce_combine.h"
#include "lockstep/dist/reduce_elements.h"

namespace lockstep::dist::detail {
namespace {

// Elements per block: the accumulators of all tree levels stay in the first-level cache.
constexpr std::int64_t kBlock = 512;
// Open subtrees while leaves are taken in order: one per binary digit of the number of inputs.
constexpr int kMaxLevels = 17;

template <ReduceOp kOp, class Acc>
void merge(Acc* __restrict into, const Acc* __restrict from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) into[i] = Combine<kOp, Acc>::apply(into[i], from[i]);
}

// Two inputs of a type that needs no widening, one or two outputs: one pass, no scratch.
template <ReduceOp kOp, class T>
void reduce_two(const void* a, const void* b, void* const* outputs, int m, std::int64_t count) {
  using U = typename Unaligned<T>::Type;
  const U* x = static_cast<const U*>(a);
  const U* y = static_cast<const U*>(b);
  if (m == 1) {
    U* out = static_cast<U*>(outputs[0]);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) out[i] = Combine<kOp, T>::apply(x[i], y[i]);
  } else {
    U* out0 = static_cast<U*>(outputs[0]);
    U* out1 = static_cast<U*>(outputs[1]);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
      const T v = Combine<kOp, T>::apply(x[i], y[i]);
      out0[i] = v;
      out1[i] = v;
    }
  }
}

template <ReduceOp kOp, class T>
void reduce_many(const void* const* inputs, int n, void* const* outputs, int m,
                 std::int64_t count) {
  using Acc = typename Element<T>::Acc;
  alignas(64) Acc partial[kMaxLevels + 1][kBlock];
  alignas(64) unsigned char result[kBlock * sizeof(T)];
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t len = count - begin < kBlock ? count - begin : kBlock;
    const std::size_t offset = static_cast<std::size_t>(begin) * sizeof(T);
    int open = 0;
    for (int k = 0; k < n; ++k) {
      widen<T>(partial[open++], static_cast<const char*>(inputs[k]) + offset, len);
      // Leaf k closes as many subtrees as its number ends in one-bits.
      for (int bits = k; bits & 1; bits >>= 1, --open)
        merge<kOp>(partial[open - 2], partial[open - 1], len);
    }
    for (; open > 1; --open) merge<kOp>(partial[open - 2], partial[open - 1], len);
    if (m == 1) {
      narrow<T>(static_cast<char*>(outputs[0]) + offset, partial[0], len);
      continue;
    }
    narrow<T>(result, partial[0], len);
    for (int j = 0; j < m; ++j)
      __builtin_memcpy(static_cast<char*>(outputs[j]) + offset, result,
                       static_cast<std::size_t>(len) * sizeof(T));
  }
}

template <ReduceOp kOp, class T>
void reduce_typed(const void* const* inputs, int n, void* const* outputs, int m,
                  std::int64_t count) {
  if constexpr (__is_same(typename Element<T>::Acc, T)) {
    if (n == 2 && m <= 2) {
      reduce_two<kOp, T>(inputs[0], inputs[1], outputs, m, count);
      return;
    }
  }
  reduce_many<kOp, T>(inputs, n, outputs, m, count);
}

template <ReduceOp kOp>
void reduce_op(DType dtype, const void* const* inputs, int n, void* const* outputs, int m,
               std::int64_t count) {
  switch (dtype) {
    case DType::kF32:
      return reduce_typed<kOp, float>(inputs, n, outputs, m, count);
    case DType::kF64:
      return reduce_typed<kOp, double>(inputs, n, outputs, m, count);
    case DType::kF16:
      return reduce_typed<kOp, F16>(inputs, n, outputs, m, count);
    case DType::kBF16:
      return reduce_typed<kOp, BF16>(inputs, n, outputs, m, count);
    case DType::kI32:
      return reduce_typed<kOp, std::int32_t>(inputs, n, outputs, m, count);
    case DType::kI64:
      return reduce_typed<kOp, std::int64_t>(inputs, n, outputs, m, count);
    case DType::kU8:
      return reduce_typed<kOp, std::uint8_t>(inputs, n, outputs, m, count);
    case DType::kBool:
      // Of values 0 and 1 the largest is "or" and the smallest is "and".
      if constexpr (kOp == ReduceOp::kSum || kOp == ReduceOp::kMax)
        return reduce_typed<ReduceOp::kMax, std::uint8_t>(inputs, n, outputs, m, count);
      else
        return reduce_typed<ReduceOp::kMin, std::uint8_t>(inputs, n, outputs, m, count);
  }
}

void reduce_all(ReduceOp op, DType dtype, const void* const* inputs, int n, void* const* outputs,
                int m, std::int64_t count) {
  switch (op) {
    case ReduceOp::kSum:
      return reduce_op<ReduceOp::kSum>(dtype, inputs, n, outputs, m, count);
    case ReduceOp::kProduct:
      return reduce_op<ReduceOp::kProduct>(dtype, inputs, n, outputs, m, count);
    case ReduceOp::kMin:
      return reduce_op<ReduceOp::kMin>(dtype, inputs, n, outputs, m, count);
    case ReduceOp::kMax:
      return reduce_op<ReduceOp::kMax>(dtype, inputs, n, outputs, m, count);
  }
}

}  // namespace
}  // namespace lockstep::dist::detail
