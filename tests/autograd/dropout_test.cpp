#include "lockstep/autograd/ops/dropout.h"

#include <limits>

#include "autograd/reference_case.h"
#include "lockstep/core/threads.h"

namespace lockstep {
namespace {

using namespace testing;

TEST(Dropout, DropsTheShareAskedForAndScalesTheRest) {
  Generator generator(7);
  for (double p : {0.1, 0.5, 0.9}) {
    const std::int64_t n = 100000;
    const Tensor y = dropout(ones({n}), p, true, generator).data();
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const float v = y.data<float>()[i];
      if (v != 0) {
        ASSERT_FLOAT_EQ(v, static_cast<float>(1 / (1 - p)));
        ++kept;
      }
    }
    // Six standard deviations.
    EXPECT_NEAR(static_cast<double>(kept), n * (1 - p), 6 * std::sqrt(n * p * (1 - p)));
  }
}

TEST(Dropout, FollowsThePhiloxSequence) {
  Generator a(11), b(11);
  a.set_stream(3);
  b.set_stream(3);
  const std::int64_t n = 103;
  const PhiloxSequence sequence = b.philox(n);
  const Tensor y = dropout(ones({n}), 0.3, true, a).data();
  for (std::int64_t i = 0; i < n; ++i)
    EXPECT_EQ(
        y.data<float>()[i] != 0,
        static_cast<double>(philox_uniform(sequence.at(static_cast<std::uint64_t>(i)))) >= 0.3)
        << i;
}

TEST(Dropout, BackwardUsesTheSameMask) {
  for (const auto format : {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
    Generator generator(5);
    const Tensor x = ones({2, 3, 5, 7}).contiguous(format);
    const Variable v(x, true);
    const Variable y = dropout(v, 0.5, true, generator);
    EXPECT_EQ(y.data().strides(), x.strides());
    y.backward(full({2, 3, 5, 7}, 3));  // a contiguous gradient, whatever x's layout
    for (std::int64_t i = 0; i < x.numel(); ++i)
      ASSERT_EQ(element(v.grad(), i), 3 * element(y.data(), i));
  }
}

TEST(Dropout, StridedInputsAreNumberedRowByRow) {
  Generator a(5), b(5);
  const Tensor x = laid_out(ones({6, 10}), Layout::kStrided);
  const Variable v(x, true);
  const Variable y = dropout(v, 0.5, true, a);
  EXPECT_SAME_BITS(y.data(), dropout(ones({6, 10}), 0.5, true, b).data());
  y.backward(ones({6, 10}));
  EXPECT_SAME_BITS(v.grad(), y.data());
}

// huggingface/transformers#37932: ranks with one seed must drop different units, and the same ones
// in every run.
TEST(Dropout, StreamsDifferAndRepeat) {
  const auto mask = [](std::uint64_t stream) {
    Generator generator(42);
    generator.set_stream(stream);
    return dropout(ones({1024}), 0.5, true, generator).data();
  };
  EXPECT_SAME_BITS(mask(0), mask(0));
  EXPECT_SAME_BITS(mask(1), mask(1));
  EXPECT_FALSE(same_bits(mask(0), mask(1)));
}

TEST(Dropout, CallsDiffer) {
  Generator generator(1);
  const Tensor first = dropout(ones({256}), 0.5, true, generator).data();
  EXPECT_FALSE(same_bits(first, dropout(ones({256}), 0.5, true, generator).data()));
}

TEST(Dropout, IdentityOutsideTraining) {
  Generator a(1), b(1);
  const Variable x(ones({64}), true);
  EXPECT_TRUE(dropout(x, 0.5, false, a).is(x));
  EXPECT_TRUE(dropout(x, 0, true, a).is(x));
  // No numbers were taken.
  EXPECT_SAME_BITS(dropout(x, 0.5, true, a).data(), dropout(x, 0.5, true, b).data());
}

TEST(Dropout, EverythingDroppedGivesZerosEvenForNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Variable x(tensor<float>({nan, 1, 2}), true);
  const Variable y = dropout(x, 1);
  EXPECT_SAME_BITS(y.data(), zeros({3}));
  y.backward(full({3}, nan));
  EXPECT_SAME_BITS(x.grad(), zeros({3}));
}

TEST(Dropout, EveryFloatingDtypeDropsTheSameElements) {
  const auto mask = [](DType dtype) {
    Generator generator(9);
    return filled_with(dropout(ones({77}, {dtype}), 0.5, true, generator).data(), kF32);
  };
  for (DType dtype : {kF64, kF16, kBF16}) EXPECT_SAME_BITS(mask(dtype), mask(kF32));
}

TEST(Dropout, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  std::vector<Tensor> results;
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    Generator generator(3);
    results.push_back(dropout(ones({100003}), 0.5, true, generator).data());
  }
  set_num_threads(before);
  EXPECT_SAME_BITS(results[1], results[0]);
  EXPECT_SAME_BITS(results[2], results[0]);
}

TEST(Dropout, EmptyTensorsAndErrors) {
  EXPECT_EQ(dropout(zeros({0, 3}), 0.5).shape(), (Shape{0, 3}));
  for (double p : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_NE(error_of([&] { dropout(zeros({2}), p); }).find("[0, 1]"), std::string::npos);
  EXPECT_NE(error_of([&] { dropout(zeros({2}, {kI64}), 0.5); }).find("i64"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
