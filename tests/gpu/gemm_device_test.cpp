// Products of matrices on every device, by every way a device has, against f64.
#include <gtest/gtest.h>

#include "lockstep/core/random.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/column_sums.h"
#include "lockstep/kernels/gemm.h"
#include "lockstep/kernels/gemm_algorithm.h"
#include "lockstep/kernels/linear.h"
#include "lockstep/kernels/matmul.h"
#include "support/device.h"
#include "support/device_tolerance.h"
#include "support/expect_close.h"

namespace lockstep::kernels {
namespace {

using testing::device_tolerance;

class GemmOnDevice : public testing::DeviceTest {
 protected:
  void TearDown() override {
    set_gemm_algorithm(GemmAlgorithm::kAuto);
    DeviceTest::TearDown();
  }
  std::vector<GemmAlgorithm> algorithms() const {
    if (device().is_cpu()) return {GemmAlgorithm::kAuto};
    return {GemmAlgorithm::kAuto, GemmAlgorithm::kTiled};
  }
  Tensor random(const Shape& shape, DType dtype = kF32) {
    return cast(randn(shape, generator_), dtype);
  }
  void expect_close(const Tensor& got, const Tensor& exact, DType dtype, double terms) const {
    EXPECT_EQ(got.dtype(), dtype);
    EXPECT_EQ(got.device(), device());
    EXPECT_CLOSE(cast(to_host(got), kF64), exact, device_tolerance(dtype),
                 device_tolerance(dtype) * std::sqrt(terms));
  }

  Generator generator_{11};
};

struct Sizes {
  std::int64_t m, n, k;
};

TEST_P(GemmOnDevice, EveryShapeLayoutAndDtype) {
  const Sizes all[] = {{1, 1, 1},   {1, 10, 7},   {64, 64, 16}, {65, 70, 33},
                       {5, 3, 600}, {130, 9, 64}, {32, 200, 20}};
  for (const GemmAlgorithm algorithm : algorithms()) {
    set_gemm_algorithm(algorithm);
    for (const Sizes& s : all) {
      for (const DType dtype : {kF32, kF64, kF16, kBF16}) {
        // The layouts are the same code for all dtypes, and so is cuBLASLt's.
        const int step = dtype == kF32 ? 1 : 3;
        for (int layout = 0; layout < 4; layout += step) {
          SCOPED_TRACE(fmt::format("algorithm {}, {} x {} x {}, {}, layout {}",
                                   static_cast<int>(algorithm), s.m, s.n, s.k, dtype_name(dtype),
                                   layout));
          const bool a_turned = layout & 1, b_turned = layout & 2;
          const Tensor a = a_turned ? random({s.k, s.m}, dtype).t() : random({s.m, s.k}, dtype);
          const Tensor b = b_turned ? random({s.n, s.k}, dtype).t() : random({s.k, s.n}, dtype);
          const Tensor exact = matmul_forward(cast(a, kF64), cast(b, kF64));
          const Tensor c = to_device(full({s.m, s.n}, 1, {dtype}));
          gemm(to_device(a), to_device(b), c);
          expect_close(c, exact, dtype, static_cast<double>(s.k));
        }
      }
    }
  }
}

// Enough tiles that the large ones are taken.
TEST_P(GemmOnDevice, LargeTiles) {
  if (device().is_cpu()) GTEST_SKIP() << "the CPU has other tiles";
  set_gemm_algorithm(GemmAlgorithm::kTiled);
  const Tensor a = random({1, 1030, 3}), b = random({2, 3, 1030});
  const Tensor exact = matmul_forward(cast(a, kF64), cast(b, kF64));
  expect_close(matmul_forward(to_device(a), to_device(b)), exact, kF32, 3);
}

TEST_P(GemmOnDevice, AccumulatesIntoRowsOfAWiderMatrix) {
  for (const GemmAlgorithm algorithm : algorithms()) {
    set_gemm_algorithm(algorithm);
    for (const DType dtype : {kF32, kBF16}) {
      const Tensor a = random({20, 300}, dtype), b = random({300, 24}, dtype);
      const Tensor wide = random({20, 40}, dtype), there = to_device(wide);
      Tensor exact = cast(wide, kF64).clone();
      gemm(cast(a, kF64), cast(b, kF64), exact.slice(1, 8, 32), true);
      gemm(to_device(a), to_device(b), there.slice(1, 8, 32), true);
      expect_close(there, exact, dtype, 300);
    }
  }
}

TEST_P(GemmOnDevice, StridesThatNoLibraryTakes) {
  for (const GemmAlgorithm algorithm : algorithms()) {
    set_gemm_algorithm(algorithm);
    const Tensor a = random({10, 3, 12}), b = random({12, 2, 9});
    const Tensor exact =
        matmul_forward(cast(a.select(1, 1), kF64), cast(b.select(1, 1), kF64).contiguous());
    const Tensor c = empty({10, 9}, {kF32, device()});
    const Tensor far_a = to_device(random({10, 12, 2}));
    gemm(to_device(a).select(1, 1), to_device(b).select(1, 1), c);
    expect_close(c, exact, kF32, 12);
    gemm(far_a.select(2, 1), to_device(b).select(1, 1), c);
    expect_close(c,
                 matmul_forward(cast(to_host(far_a).select(2, 1), kF64),
                                cast(b.select(1, 1), kF64).contiguous()),
                 kF32, 12);
  }
  if (device().is_cpu()) return;
  set_gemm_algorithm(GemmAlgorithm::kLibrary);
  const Tensor apart = to_device(random({4, 4, 2})).select(2, 0),
               c = empty({4, 4}, {kF32, device()});
  EXPECT_THROW(gemm(apart, apart, c), Error);
}

TEST_P(GemmOnDevice, BatchesBroadcast) {
  for (const GemmAlgorithm algorithm : algorithms()) {
    set_gemm_algorithm(algorithm);
    const Tensor a = random({3, 1, 5, 8}), b = random({4, 8, 6});
    const Tensor exact_a = cast(a, kF64), exact_b = cast(b, kF64);
    const Tensor far_a = to_device(a), far_b = to_device(b);
    const Tensor exact = matmul_forward(exact_a, exact_b);
    expect_close(matmul_forward(far_a, far_b), exact, kF32, 8);
    const Tensor dy = random(exact.shape()), far_dy = to_device(dy), exact_dy = cast(dy, kF64);
    expect_close(matmul_backward_a(far_dy, far_a, far_b),
                 matmul_backward_a(exact_dy, exact_a, exact_b), kF32, 24);
    expect_close(matmul_backward_b(far_dy, far_a, far_b),
                 matmul_backward_b(exact_dy, exact_a, exact_b), kF32, 15);
    const Tensor vector = random({8});
    expect_close(matmul_forward(far_a, to_device(vector)),
                 matmul_forward(exact_a, cast(vector, kF64)), kF32, 8);
  }
}

TEST_P(GemmOnDevice, Linear) {
  for (const GemmAlgorithm algorithm : algorithms()) {
    set_gemm_algorithm(algorithm);
    for (const DType dtype : {kF32, kF16, kBF16}) {
      for (const std::int64_t out : {10, 16}) {
        SCOPED_TRACE(fmt::format("{} to {} features", dtype_name(dtype), out));
        const Tensor x = random({2, 7, 24}, dtype), w = random({out, 24}, dtype);
        const Tensor b = random({out}, dtype), dy = random({2, 7, out}, dtype);
        const auto wide = [](const Tensor& t) { return cast(t, kF64); };
        const Tensor far_x = to_device(x), far_w = to_device(w), far_b = to_device(b);
        for (const bool relu : {false, true}) {
          expect_close(linear_forward(far_x, far_w, far_b, relu),
                       linear_forward(wide(x), wide(w), wide(b), relu), dtype, 24);
          expect_close(linear_forward(far_x, far_w, Tensor(), relu),
                       linear_forward(wide(x), wide(w), Tensor(), relu), dtype, 24);
        }
        const Tensor far_dy = to_device(dy);
        expect_close(linear_backward_input(far_dy, far_w), linear_backward_input(wide(dy), wide(w)),
                     dtype, out);
        expect_close(linear_backward_weight(far_dy, far_x),
                     linear_backward_weight(wide(dy), wide(x)), dtype, 14);
        expect_close(linear_backward_bias(far_dy), linear_backward_bias(wide(dy)), dtype, 14);
      }
    }
  }
}

TEST_P(GemmOnDevice, NothingToMultiply) {
  const Tensor none = to_device(empty({3, 0})), also = to_device(empty({0, 4}));
  const Tensor c = to_device(full({3, 4}, 5));
  gemm(none, also, c);
  EXPECT_SAME_BITS(to_host(c), zeros({3, 4}));
  EXPECT_EQ(linear_forward(also, to_device(empty({2, 4})), Tensor()).shape(), (Shape{0, 2}));
  EXPECT_EQ(matmul_forward(to_device(empty({2, 0, 3})), to_device(empty({3, 5}))).shape(),
            (Shape{2, 0, 5}));
}

TEST_P(GemmOnDevice, ColumnSums) {
  for (const DType dtype : {kF32, kF64, kF16, kBF16})
    for (const std::int64_t columns : {1, 10, 64, 300})
      for (const std::int64_t rows : {1, 100, 1000}) {
        const Tensor x = random({rows, columns}, dtype);
        const Tensor sum = to_device(full({columns}, 9, {dtype})), exact = empty({columns}, {kF64});
        column_sums(to_device(x), rows, sum);
        column_sums(cast(x, kF64), rows, exact);
        expect_close(sum, exact, dtype, static_cast<double>(rows));
      }
}

TEST_P(GemmOnDevice, TwoDevicesAreRefused) {
  if (device().is_cpu()) GTEST_SKIP() << "there is only one CPU";
  const Tensor here = random({2, 2}), there = to_device(here);
  EXPECT_THROW(matmul_forward(here, there), Error);
  EXPECT_THROW(linear_forward(there, here, Tensor()), Error);
}

LOCKSTEP_ON_ALL_DEVICES(GemmOnDevice);

}  // namespace
}  // namespace lockstep::kernels
