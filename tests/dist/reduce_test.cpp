#include "lockstep/dist/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "dist/reduction_oracle.h"

namespace lockstep::dist {
namespace {

using testing::reduce_element;

constexpr DType kAllTypes[] = {kF32, kF64, kF16, kBF16, kI32, kI64, kU8, kBool};
constexpr ReduceOp kAllOps[] = {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax};

std::vector<std::pair<const char*, detail::ReduceKernel>> kernels_here() {
  std::vector<std::pair<const char*, detail::ReduceKernel>> all{
      {"baseline", detail::reduce_baseline}};
  if (reduce_instruction_set() != "baseline") all.emplace_back("avx2", detail::reduce_avx2);
  if (reduce_instruction_set() == "avx512") all.emplace_back("avx512", detail::reduce_avx512);
  return all;
}

// Values that round at every addition.
template <class T>
T rough_value(std::mt19937& generator) {
  if constexpr (std::is_same_v<T, bool>)
    return (generator() & 1) != 0;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>((static_cast<std::uint64_t>(generator()) << 32) | generator());
  else
    return static_cast<T>(std::ldexp(static_cast<float>(static_cast<std::int32_t>(generator())),
                                     -31 + static_cast<int>(generator() % 12)));
}

// Bytes with room for a guard on both sides and a start that is off by `shift` bytes.
struct Buffer {
  Buffer(std::size_t bytes, std::size_t shift)
      : all(bytes + 128, 0xa5), begin(64 + shift), n(bytes) {}
  unsigned char* data() { return all.data() + begin; }
  bool guards_intact() const {
    for (std::size_t i = 0; i < all.size(); ++i)
      if ((i < begin || i >= begin + n) && all[i] != 0xa5) return false;
    return true;
  }
  std::vector<unsigned char> all;
  std::size_t begin, n;
};

template <class T>
void check_reduce(detail::ReduceKernel kernel, ReduceOp op, int n, std::int64_t count,
                  std::size_t shift, bool in_place) {
  std::mt19937 generator(static_cast<std::uint32_t>(n * 1000003 + count));
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
  std::vector<std::vector<T>> columns(static_cast<std::size_t>(count));
  std::vector<Buffer> buffers, results;
  for (int r = 0; r < n; ++r) {
    buffers.emplace_back(bytes, shift);
    results.emplace_back(bytes, shift);
    for (std::int64_t i = 0; i < count; ++i) {
      const T value = rough_value<T>(generator);
      columns[static_cast<std::size_t>(i)].push_back(value);
      std::memcpy(buffers.back().data() + static_cast<std::size_t>(i) * sizeof(T), &value,
                  sizeof(T));
    }
  }
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (int r = 0; r < n; ++r) {
    inputs.push_back(buffers[static_cast<std::size_t>(r)].data());
    outputs.push_back((in_place ? buffers : results)[static_cast<std::size_t>(r)].data());
  }
  kernel(op, kDTypeOf<T>, inputs.data(), n, outputs.data(), n, count);
  for (auto& buffer : in_place ? buffers : results) {
    ASSERT_TRUE(buffer.guards_intact());
    for (std::int64_t i = 0; i < count; ++i) {
      const T expected = reduce_element<T>(op, columns[static_cast<std::size_t>(i)]);
      ASSERT_EQ(std::memcmp(buffer.data() + static_cast<std::size_t>(i) * sizeof(T), &expected,
                            sizeof(T)),
                0)
          << "element " << i << " of " << count << ", " << n << " inputs, shift " << shift;
    }
  }
}

TEST(ReduceTree, GivesTheBitsOfTheTreeWithEveryInstructionSet) {
  for (const auto& [name, kernel] : kernels_here())
    for (const ReduceOp op : kAllOps)
      for (const DType dtype : kAllTypes)
        for (const int n : {2, 3, 4, 5, 7, 8, 16})
          for (const std::int64_t count : {0, 1, 7, 16, 33, 600}) {
            SCOPED_TRACE(std::string(name) + " " + std::string(reduce_op_name(op)) + " " +
                         std::string(dtype_name(dtype)));
            visit_dtype(dtype, [&, kernel = kernel]<class T>() {
              check_reduce<T>(kernel, op, n, count, static_cast<std::size_t>(count % 2),
                              n % 2 == 0);
              if (n == 2) check_reduce<T>(kernel, op, n, count, 1, false);
            });
            if (HasFatalFailure()) return;
          }
}

// A sum of bytes failed from 16 elements on, where the vector path began (open-mpi/ompi#12717).
TEST(ReduceTree, ReducesBytesAtAnyCountAndAlignment) {
  for (const auto& [name, kernel] : kernels_here())
    for (const std::int64_t count : {1, 2, 4, 8, 15, 16, 17, 31, 32, 33, 63, 65})
      for (const std::size_t shift : {0u, 1u}) {
        check_reduce<std::uint8_t>(kernel, ReduceOp::kSum, 4, count, shift, true);
        if (HasFatalFailure()) return;
      }
}

TEST(ReduceTree, RoundsHalfTypesOnce) {
  // 2048 + 1 rounds to 2048 in f16, but 2048 + 1 + 1 is 2050.
  const Half a(2048.0f), b(1.0f), c(1.0f);
  const void* inputs[] = {&a, &b, &c};
  Half sum;
  void* output = &sum;
  reduce_tree(ReduceOp::kSum, kF16, inputs, {&output, 1}, 1);
  EXPECT_EQ(static_cast<float>(sum), 2050.0f);
}

TEST(ReduceTree, WrapsIntegersAndKeepsNan) {
  const std::uint8_t bytes[2] = {200, 100};
  const void* byte_inputs[] = {&bytes[0], &bytes[1]};
  std::uint8_t byte_sum = 0;
  void* output = &byte_sum;
  reduce_tree(ReduceOp::kSum, kU8, byte_inputs, {&output, 1}, 1);
  EXPECT_EQ(byte_sum, 44);

  const std::int32_t ints[2] = {std::numeric_limits<std::int32_t>::max(), 1};
  const void* int_inputs[] = {&ints[0], &ints[1]};
  std::int32_t int_sum = 0;
  output = &int_sum;
  reduce_tree(ReduceOp::kSum, kI32, int_inputs, {&output, 1}, 1);
  EXPECT_EQ(int_sum, std::numeric_limits<std::int32_t>::min());

  for (const auto& [name, kernel] : kernels_here())
    for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax})
      for (const int place : {0, 1, 2}) {
        float values[3][40];
        for (int r = 0; r < 3; ++r)
          for (float& v : values[r]) v = r == place ? std::nanf("") : static_cast<float>(r);
        float result[40];
        const void* inputs[] = {values[0], values[1], values[2]};
        void* to = result;
        kernel(op, kF32, inputs, 3, &to, 1, 40);
        for (float v : result) EXPECT_TRUE(std::isnan(v)) << name;
        kernel(op, kF32, inputs, 2, &to, 1, 40);
        for (float v : result) EXPECT_EQ(std::isnan(v), place < 2) << name;
      }
}

// Every half value comes through unchanged: conversion up is exact, and down it rounds nothing.
TEST(ReduceTree, ConvertsEveryHalfValueThereAndBack) {
  std::vector<std::uint16_t> all(65536), zeros(65536), out(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const auto& [name, kernel] : kernels_here())
    for (const DType dtype : {kF16, kBF16}) {
      const void* inputs[] = {all.data(), all.data()};
      void* output = out.data();
      kernel(ReduceOp::kMax, dtype, inputs, 2, &output, 1, 65536);
      const std::uint32_t infinity = dtype == kF16 ? 0x7c00 : 0x7f80;
      for (std::uint32_t i = 0; i < 65536; ++i) {
        if ((i & 0x7fff) > infinity)
          ASSERT_GT(out[i] & 0x7fffu, infinity) << name << ": a NaN was lost at " << i;
        else
          ASSERT_EQ(out[i], i) << name;
      }
    }
}

TEST(ReduceTree, RefusesNoInputs) {
  float x = 0;
  void* output = &x;
  EXPECT_THROW(reduce_tree(ReduceOp::kSum, kF32, {}, {&output, 1}, 1), Error);
}

}  // namespace
}  // namespace lockstep::dist
