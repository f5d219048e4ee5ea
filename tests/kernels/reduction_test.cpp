// Sums, extrema, moments and norms, indexing and sorting.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/core/threads.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/extremum.h"
#include "lockstep/kernels/index.h"
#include "lockstep/kernels/moments.h"
#include "lockstep/kernels/reduction.h"
#include "lockstep/kernels/sum.h"
#include "lockstep/kernels/transcendental.h"
#include "support/expect_close.h"

namespace lockstep::kernels {
namespace {

using lockstep::testing::element;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor waves(const Shape& shape, DType dtype = kF64) {
  return cast(sin(cast(arange(shape.numel()), kF64)), dtype).view(shape);
}

// Sum over the axes of the set in f64, one element at a time.
Tensor slow_sum(const Tensor& x, unsigned set) {
  const Tensor c = cast(x, kF64).contiguous();
  Tensor y = zeros(reduced_shape(x.shape(), set, true), {kF64});
  for (std::int64_t i = 0; i < c.numel(); ++i) {
    std::int64_t rest = i, at = 0;
    for (int axis = x.dim() - 1; axis >= 0; --axis) {
      const std::int64_t k = rest % x.shape()[axis];
      rest /= x.shape()[axis];
      if (!(set >> axis & 1)) at += k * y.strides()[axis];
    }
    y.data<double>()[at] += c.data<double>()[i];
  }
  return y;
}

Shape axes_of(unsigned set) {
  Shape axes;
  for (int i = 0; i < kMaxRank; ++i)
    if (set >> i & 1) axes.push_back(i);
  return axes;
}

TEST(Sum, EverySetOfAxesInEveryLayoutAgreesWithF64) {
  const Tensor bases[] = {waves({3, 5, 7, 9}), waves({2, 70, 3, 40}), waves({2, 1, 600, 3})};
  for (const Tensor& base : bases) {
    const Tensor layouts[] = {base, base.contiguous(MemoryFormat::kChannelsLast),
                              base.transpose(0, 3), base.slice(2, 0, base.size(2), 2),
                              base.slice(2, 0, 1).expand(base.shape())};
    for (const Tensor& x : layouts) {
      for (unsigned set = 1; set < 16; ++set) {
        const Tensor exact = slow_sum(x, set);
        EXPECT_CLOSE(sum(x, axes_of(set), true), exact, 1e-12, 1e-12);
        EXPECT_CLOSE(sum(cast(x, kF32), axes_of(set), true), exact, 1e-5, 2e-5);
      }
      EXPECT_CLOSE(sum(x), slow_sum(x, 15).view({}), 1e-12, 1e-12);
    }
  }
}

TEST(Sum, HalfOnesAreExact) {
  // sonos/tract#2587: a running f16 sum stops at 2048. tracel-ai/burn#4769: a mean that overflows.
  for (DType dtype : {kF16, kBF16}) {
    EXPECT_EQ(sum(ones({3000}, {dtype}), {}, false, kF32).item(), 3000);
    EXPECT_EQ(mean(ones({65536}, {dtype})).item(), 1);
    EXPECT_EQ(sum(ones({65536}, {dtype}), {}, false, kF32).item(), 65536);
  }
  EXPECT_EQ(sum(ones({3000}, {kF16})).item(), 3000);
  EXPECT_EQ(sum(ones({10000}, {kF16})).item(), 10000);
  EXPECT_EQ(sum(ones({10000, 2}, {kF16}), {0}).slice(0, 0, 1).item(), 10000);
  EXPECT_EQ(sum(ones({65536}, {kF16})).item(), kInf);
}

TEST(Sum, LongF32SumsStayAccurate) {
  const std::int64_t n = 20'000'001;
  const Tensor x = full({n}, 0.1);
  const double exact = static_cast<double>(n) * static_cast<double>(0.1f);
  EXPECT_NEAR(sum(x).item() / exact, 1, 1e-6);
  EXPECT_NEAR(element(sum(x.slice(0, 0, n - 1).view({-1, 4}), {0}), 2) /
                  ((n - 1) / 4 * static_cast<double>(0.1f)),
              1, 1e-6);
}

TEST(Sum, BitsDoNotDependOnThreads) {
  const Tensor x = waves({70001, 12}, kF32);
  set_num_threads(1);
  const Tensor all = sum(x), columns = sum(x, {0}), rows = sum(x, {1}), spread = sum(x.t(), {1});
  for (int threads : {2, 5}) {
    set_num_threads(threads);
    EXPECT_SAME_BITS(sum(x), all);
    EXPECT_SAME_BITS(sum(x, {0}), columns);
    EXPECT_SAME_BITS(sum(x, {1}), rows);
    EXPECT_SAME_BITS(sum(x.t(), {1}), spread);
  }
  set_num_threads(0);
  EXPECT_SAME_BITS(columns, spread);
}

TEST(Sum, IntegersAndNothing) {
  EXPECT_EQ(sum(full({1000}, 255, {kU8})).dtype(), kI64);
  EXPECT_EQ(sum(full({1000}, 255, {kU8})).item(), 255000);
  EXPECT_EQ(sum(ones({5}, {DType::kBool})).item(), 5);
  EXPECT_THROW(mean(arange(3)), Error);
  EXPECT_EQ(mean(arange(4), {}, false, kF32).item(), 1.5);
  EXPECT_EQ(sum(empty({0, 3})).item(), 0);
  EXPECT_CLOSE(sum(empty({0, 3}), {0}), zeros({3}), 0, 0);
  EXPECT_EQ(sum(empty({0, 3}), {1}).shape(), Shape{0});
  EXPECT_TRUE(std::isnan(mean(empty({0})).item()));
  EXPECT_EQ(sum(ones({})).item(), 1);
  EXPECT_THROW(sum(ones({2, 3}), {0, -2}), Error);
  EXPECT_THROW(sum(ones({2, 3}), {2}), Error);
}

TEST(SumTo, UndoesBroadcast) {
  const Tensor x = waves({4, 3, 5});
  EXPECT_CLOSE(sum_to(x, {3, 1}), slow_sum(x, 5).view({3, 1}), 1e-12, 1e-12);
  EXPECT_CLOSE(sum_to(x, {}), slow_sum(x, 7).view({}), 1e-12, 1e-12);
  EXPECT_CLOSE(sum_to(x, {4, 3, 5}), x, 0, 0);
  EXPECT_EQ(sum_to(empty({0, 3}), {3}).shape(), Shape{3});
}

TEST(Extremum, NanIsTheGreatest) {
  // pytorch/pytorch#1810.
  const Tensor first = cast(tensor<double>({kNan, 1}), kF32),
               last = cast(tensor<double>({1, kNan}), kF32);
  for (const Tensor& x : {first, last}) {
    EXPECT_TRUE(std::isnan(amax(x).item()));
    EXPECT_TRUE(std::isnan(amin(x).item()));
    EXPECT_TRUE(std::isnan(max_along(x, 0).values.item()));
  }
  EXPECT_EQ(max_along(last, 0).indices.item(), 1);
  for (std::int64_t n : {40, 5000}) {
    for (std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
      Tensor x = waves({n}, kF32);
      x.data<float>()[at] = static_cast<float>(kNan);
      EXPECT_TRUE(std::isnan(amax(x).item()));
      EXPECT_EQ(max_along(x, 0).indices.item(), at);
    }
  }
}

TEST(Extremum, ArgmaxTakesTheFirst) {
  // openvinotoolkit/openvino#33626.
  for (std::int64_t n : {37, 1025}) EXPECT_EQ(max_along(full({n}, kNan), 0).indices.item(), 0);
  EXPECT_EQ(max_along(tensor<float>({1, 3, 3, 2}), 0).indices.item(), 1);
  EXPECT_EQ(min_along(tensor<float>({2, 1, 3, 1}), 0).indices.item(), 1);
}

TEST(Extremum, AlongAnyAxis) {
  const Tensor x = waves({4, 5, 6});
  for (const Tensor& layout : {x, x.transpose(0, 2).contiguous().transpose(0, 2)}) {
    for (int axis = 0; axis < 3; ++axis) {
      const ValuesAndIndices found = max_along(layout, axis, true);
      EXPECT_CLOSE(found.values, amax(layout, {axis}, true), 0, 0);
      EXPECT_CLOSE(gather(layout, axis, found.indices), found.values, 0, 0);
    }
  }
  EXPECT_EQ(amax(tensor<std::int64_t>({-5, -3})).item(), -3);
  EXPECT_THROW(amax(empty({0})), Error);
  EXPECT_EQ(amax(empty({0, 3}), {1}).shape(), Shape{0});
  EXPECT_THROW(max_along(empty({2, 0}), 1), Error);
}

TEST(Extremum, AnyAndAll) {
  const Tensor x = tensor<float>({0, 1, 0, 0}, {2, 2});
  EXPECT_CLOSE(any(x, {1}), tensor<float>({1, 0}), 0, 0);
  EXPECT_CLOSE(all(x, {0}), tensor<float>({0, 0}), 0, 0);
  EXPECT_EQ(any(empty({0})).item(), 0);
  EXPECT_EQ(all(empty({0})).item(), 1);
  EXPECT_EQ(any(full({3}, kNan)).item(), 1);
}

TEST(Moments, VarianceOfLargeMean) {
  const Tensor x = add(waves({1000}, kF32), 4096.0);
  const Tensor wide = cast(x, kF64);
  EXPECT_CLOSE(var(x), var(wide), 1e-5, 0);
  EXPECT_CLOSE(std(x, {0}, 0), std(wide, {0}, 0), 1e-5, 0);
  EXPECT_TRUE(std::isnan(var(ones({1})).item()));
  EXPECT_EQ(var(ones({1}), {}, 0).item(), 0);
  EXPECT_EQ(std(tensor<float>({1, 3})).item<float>(), std::sqrt(2.f));
}

TEST(Norm, NeitherOverflowsNorUnderflows) {
  EXPECT_FLOAT_EQ(norm(full({400}, 1e25)).item<float>(), 2e26f);
  EXPECT_FLOAT_EQ(norm(full({4}, 1e-30)).item<float>(), 2e-30f);
  EXPECT_DOUBLE_EQ(norm(full({4}, 1e300, {kF64})).item(), 2e300);
  EXPECT_DOUBLE_EQ(norm(full({4}, 1e-300, {kF64})).item(), 2e-300);
  EXPECT_EQ(norm(full({10000}, 3, {kF16})).item(), 300);
  EXPECT_EQ(norm(tensor<float>({3, -4}), Norm::kL1).item(), 7);
  EXPECT_EQ(norm(tensor<float>({3, -4}), Norm::kInf).item(), 4);
  EXPECT_CLOSE(norm(tensor<float>({3, -4, 0, 0}, {2, 2}), Norm::kL2, {1}), tensor<float>({5, 0}), 0,
               0);
}

TEST(Index, SelectsRowsAndChecks) {
  const Tensor x = waves({5, 3});
  const Tensor index = tensor<std::int64_t>({4, 0, 4});
  const Tensor y = index_select(x, 0, index);
  EXPECT_CLOSE(y.select(0, 2), x.select(0, 4), 0, 0);
  EXPECT_CLOSE(index_select(x.t(), 1, index), y.t(), 0, 0);
  EXPECT_THROW(index_select(x, 0, tensor<std::int64_t>({5})), Error);
  EXPECT_THROW(index_select(x, 0, tensor<std::int64_t>({-1})), Error);
  EXPECT_EQ(index_select(x, 0, empty({0}, {kI64})).shape(), (Shape{0, 3}));
  EXPECT_CLOSE(index_select_backward(ones({3, 3}), {5, 3}, 0, index).select(1, 0),
               tensor<float>({1, 0, 0, 0, 2}), 0, 0);
}

TEST(Index, SortAndTopkPutNanFirstOrLast) {
  // pytorch/pytorch#1810.
  const Tensor x = cast(tensor<double>({4, kNan, 7, -3}), kF32);
  const ValuesAndIndices best = topk(x, 2, 0, true);
  EXPECT_CLOSE(best.values, tensor<double>({kNan, 7}), 0, 0);
  EXPECT_CLOSE(best.indices, tensor<double>({1, 2}), 0, 0);
  EXPECT_CLOSE(sort(x, 0, false).values, tensor<double>({-3, 4, 7, kNan}), 0, 0);
  EXPECT_CLOSE(sort(x, 0, true).indices, tensor<double>({1, 2, 0, 3}), 0, 0);
  EXPECT_CLOSE(sort(tensor<float>({2, 1, 2, 1}), 0, true).indices, tensor<double>({0, 2, 1, 3}), 0,
               0);
  EXPECT_THROW(topk(x, 5, 0, true), Error);
  EXPECT_EQ(topk(empty({0, 3}), 2, 1, true).values.shape(), (Shape{0, 2}));
}

TEST(Index, OffsetsBeyondTwoToThe31) {
  // microsoft/onnxruntime#28108. The table is untouched zero pages but for two of them.
  const std::int64_t rows = 300'000, columns = 8'000;
  Tensor table;
  try {
    table = empty({rows, columns}, {kU8});
  } catch (const OutOfMemoryError&) {
    GTEST_SKIP() << "no 2.4 GB of address space";
  }
  // Fresh from the system, so zero; huge pages would make it resident, so it is only read in part.
  auto* p = table.data<std::uint8_t>();
  p[std::int64_t{268'435} * columns + 7'999] = 5;
  p[std::int64_t{299'999} * columns + 7'999] = 7;
  const Tensor picked = index_select(table, 0, tensor<std::int64_t>({268'435, 299'999}));
  EXPECT_EQ(element(picked, 7'999), 5);
  EXPECT_EQ(element(picked, 15'999), 7);
  const Tensor end = table.slice(0, 268'000, rows);
  EXPECT_EQ(sum(end).item(), 12);
  const Tensor last_column = table.select(1, 7'999);
  EXPECT_EQ(sum(last_column.slice(0, 268'000, rows)).item(), 12);
  EXPECT_EQ(sum(cast(last_column.slice(0, 268'000, rows), kF32)).item(), 12);
  EXPECT_EQ(sum(last_column.slice(0, 268'000, rows).clone()).item(), 12);
}

}  // namespace
}  // namespace lockstep::kernels
