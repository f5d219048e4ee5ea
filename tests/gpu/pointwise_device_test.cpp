// Element-wise ops on every device against the CPU's f64: functors, dtypes, layouts, broadcasting.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/kernels/accumulate.h"
#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/compare.h"
#include "lockstep/kernels/transcendental.h"
#include "support/device.h"
#include "support/expect_close.h"
#include "support/message.h"

namespace lockstep::kernels {
namespace {

using lockstep::testing::message_of;

class PointwiseOnDevice : public lockstep::testing::DeviceTest {
 protected:
  Tensor random(const Shape& shape, double low, double high, DType dtype = kF32) {
    Tensor x = empty(shape, {kF64});
    uniform_(x, low, high, generator_);
    return cast(x, dtype);
  }
  Generator generator_{5};
};

const DType kAll[] = {kF32, kF64, kF16, kBF16, kI32, kI64, kU8, kBool};
const DType kReal[] = {kF32, kF64, kF16, kBF16};

double tolerance(DType dtype) {
  return dtype == kF64 ? 1e-12 : dtype == kF32 ? 2e-6 : dtype == kF16 ? 1e-3 : 8e-3;
}

struct UnaryCase {
  const char* name;
  std::function<Tensor(const Tensor&)> op;
  double low, high;
};
struct BinaryCase {
  const char* name;
  std::function<Tensor(const Tensor&, const Tensor&)> op;
  double low, high;
};

std::vector<UnaryCase> unary_cases() {
  return {
      {"neg", neg, -3, 3},
      {"abs", abs, -3, 3},
      {"sign", sign, -3, 3},
      {"square", square, -3, 3},
      {"sqrt", sqrt, 0, 9},
      {"rsqrt", rsqrt, 0.1, 9},
      {"reciprocal", reciprocal, 0.1, 4},
      {"clamp", [](const Tensor& x) { return clamp(x, -1, 1.5); }, -3, 3},
      {"relu", relu, -3, 3},
      {"sigmoid", sigmoid, -9, 9},
      {"tanh", tanh, -4, 4},
      {"silu", silu, -6, 6},
      {"gelu", [](const Tensor& x) { return gelu(x, GeluApproximation::kNone); }, 0, 4},
      {"gelu_tanh", [](const Tensor& x) { return gelu(x, GeluApproximation::kTanh); }, 0, 4},
      {"exp", exp, -8, 8},
      {"log", log, 1.5, 50},
      {"log1p", log1p, 0.1, 5},
      {"sin", sin, 0.1, 1.5},
      {"cos", cos, 0, 1.4},
      {"erf", erf, -3, 3},
  };
}

std::vector<BinaryCase> binary_cases() {
  const auto none = GeluApproximation::kNone, by_tanh = GeluApproximation::kTanh;
  return {
      {"add", [](const Tensor& a, const Tensor& b) { return add(a, b); }, 0, 3},
      {"sub", [](const Tensor& a, const Tensor& b) { return sub(a, b); }, 0, 3},
      {"mul", [](const Tensor& a, const Tensor& b) { return mul(a, b); }, -3, 3},
      {"div", [](const Tensor& a, const Tensor& b) { return div(a, b); }, 0.5, 3},
      {"pow", [](const Tensor& a, const Tensor& b) { return pow(a, b); }, 0.5, 2},
      {"maximum", [](const Tensor& a, const Tensor& b) { return maximum(a, b); }, -3, 3},
      {"minimum", [](const Tensor& a, const Tensor& b) { return minimum(a, b); }, -3, 3},
      {"relu_backward", relu_backward, -2, 2},
      {"sigmoid_backward", sigmoid_backward, 0.1, 0.9},
      {"tanh_backward", tanh_backward, -0.9, 0.9},
      {"silu_backward", silu_backward, 0, 3},
      {"gelu_backward",
       [=](const Tensor& dy, const Tensor& x) { return gelu_backward(dy, x, none); }, 0, 3},
      {"gelu_tanh_backward",
       [=](const Tensor& dy, const Tensor& x) { return gelu_backward(dy, x, by_tanh); }, 0, 3},
      {"clamp_backward",
       [](const Tensor& dy, const Tensor& x) { return clamp_backward(dy, x, -1, 1.5); }, -3, 3},
  };
}

TEST_P(PointwiseOnDevice, OneInput) {
  for (const UnaryCase& c : unary_cases()) {
    for (DType dtype : kReal) {
      SCOPED_TRACE(std::string(c.name) + " " + std::string(dtype_name(dtype)));
      const Tensor x = random({531}, c.low, c.high, dtype);
      const Tensor y = c.op(to_device(x));
      EXPECT_EQ(y.dtype(), dtype);
      EXPECT_EQ(y.device(), device());
      EXPECT_CLOSE(cast(to_host(y), kF64), c.op(cast(x, kF64)), tolerance(dtype),
                   tolerance(dtype) * 0.1);
    }
  }
}

TEST_P(PointwiseOnDevice, TwoInputs) {
  for (const BinaryCase& c : binary_cases()) {
    for (DType dtype : kReal) {
      SCOPED_TRACE(std::string(c.name) + " " + std::string(dtype_name(dtype)));
      const Tensor a = random({13, 41}, c.low, c.high, dtype);
      const Tensor b = random({13, 41}, c.low, c.high, dtype);
      const Tensor exact = c.op(cast(a, kF64), cast(b, kF64));
      const Tensor y = c.op(to_device(a), to_device(b));
      EXPECT_CLOSE(cast(to_host(y), kF64), exact, tolerance(dtype) * 2, tolerance(dtype));
    }
  }
}

// Whole numbers: every device has the same bits.
TEST_P(PointwiseOnDevice, EveryPairOfDtypesAndLayouts) {
  const auto whole = [&](const Shape& shape, DType dtype) {
    return cast(cast(random(shape, 0, 7, kF64), kI64), dtype);
  };
  for (DType da : kAll) {
    for (DType db : kAll) {
      SCOPED_TRACE(std::string(dtype_name(da)) + " " + std::string(dtype_name(db)));
      const Tensor base = whole({4, 3, 2}, da), wide = whole({4, 6, 2}, da), b = whole({3, 1}, db);
      const Tensor full_b = whole({4, 3, 2}, db), there_b = to_device(full_b);
      const Tensor there = to_device(base), there_wide = to_device(wide), small = to_device(b);
      EXPECT_SAME_BITS(to_host(add(there, there_b)), add(base, full_b));
      EXPECT_SAME_BITS(to_host(mul(there, small)), mul(base, b));
      EXPECT_SAME_BITS(to_host(add(there_wide.slice(1, 0, 6, 2), small)),
                       add(wide.slice(1, 0, 6, 2), b));
      EXPECT_SAME_BITS(to_host(lt(there.permute({0, 1, 2}), there_b)), lt(base, full_b));
      EXPECT_SAME_BITS(to_host(sub(there, 2)), sub(base, 2));
      EXPECT_SAME_BITS(to_host(mul(0.5, there)), mul(0.5, base));
      EXPECT_SAME_BITS(to_host(maximum(there, small.select(0, 1))), maximum(base, b.select(0, 1)));
    }
  }
}

// Rows of whole vectors: a bias, a scale per row, rows of a wider matrix, and each of these off the
// 16 bytes.
TEST_P(PointwiseOnDevice, RowsSideBySide) {
  for (DType dtype : {kF32, kF16, kBF16}) {
    SCOPED_TRACE(dtype_name(dtype));
    const Tensor wide = random({5, 48}, -2, 2, dtype), row = random({25}, -2, 2, dtype);
    const Tensor per_row = random({5, 1}, -2, 2, dtype);
    const Tensor far_wide = to_device(wide), far_row = to_device(row);
    const Tensor far_per_row = to_device(per_row);
    for (const std::int64_t start : {0, 1}) {
      const Tensor x = wide.slice(1, start, start + 24), bias = row.slice(0, start, start + 24);
      const Tensor far = far_wide.slice(1, start, start + 24);
      const Tensor far_bias = far_row.slice(0, start, start + 24);
      EXPECT_SAME_BITS(to_host(add(far, far_bias)), add(x, bias));
      EXPECT_SAME_BITS(to_host(mul(far, far_per_row)), mul(x, per_row));
      EXPECT_SAME_BITS(to_host(sub(far_bias, far)), sub(bias, x));
      EXPECT_SAME_BITS(to_host(mul(far, 3)), mul(x, 3));
    }
    const Tensor out = wide.clone(), far_out = to_device(wide);
    add_into(out.slice(1, 0, 24), wide.slice(1, 24, 48), per_row);
    add_into(far_out.slice(1, 0, 24), far_wide.slice(1, 24, 48), far_per_row);
    EXPECT_SAME_BITS(to_host(far_out), out);
  }
}

TEST_P(PointwiseOnDevice, ComparisonsAndLogic) {
  const Tensor a = cast(tensor<double>({1, 2, 3, 0, std::nan(""), INFINITY}), kF32);
  const Tensor b = cast(tensor<double>({1, 3, 2, 0, 1, std::nan("")}), kF32);
  const Tensor x = to_device(a), y = to_device(b);
  EXPECT_SAME_BITS(to_host(eq(x, y)), eq(a, b));
  EXPECT_SAME_BITS(to_host(ne(x, y)), ne(a, b));
  EXPECT_SAME_BITS(to_host(lt(x, y)), lt(a, b));
  EXPECT_SAME_BITS(to_host(le(x, y)), le(a, b));
  EXPECT_SAME_BITS(to_host(gt(x, y)), gt(a, b));
  EXPECT_SAME_BITS(to_host(ge(x, 2)), ge(a, 2));
  EXPECT_SAME_BITS(to_host(logical_and(x, y)), logical_and(a, b));
  EXPECT_SAME_BITS(to_host(logical_or(x, y)), logical_or(a, b));
  EXPECT_SAME_BITS(to_host(logical_not(x)), logical_not(a));
  EXPECT_SAME_BITS(to_host(isnan(x)), isnan(a));
  EXPECT_SAME_BITS(to_host(isfinite(x)), isfinite(a));
  EXPECT_SAME_BITS(to_host(where(gt(x, 1), x, y)), where(gt(a, 1), a, b));
  EXPECT_SAME_BITS(to_host(where(gt(x, 1), x, -1)), where(gt(a, 1), a, -1));
}

TEST_P(PointwiseOnDevice, ImagesStayChannelsLast) {
  const Tensor x = random({2, 5, 3, 4}, -1, 1).contiguous(MemoryFormat::kChannelsLast);
  const Tensor bias = random({5, 1, 1}, -1, 1);
  const Tensor y = add(to_device(x), to_device(bias));
  EXPECT_TRUE(y.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_SAME_BITS(to_host(y), add(x, bias));
}

TEST_P(PointwiseOnDevice, ViewsThatStartAnywhere) {
  for (DType dtype : kAll) {
    const Tensor x = cast(arange(50), dtype), there = to_device(x);
    for (int start : {1, 2, 3, 7})
      EXPECT_SAME_BITS(to_host(neg(there.slice(0, start, 45))), neg(x.slice(0, start, 45)));
  }
}

TEST_P(PointwiseOnDevice, InPlaceAndOverlapping) {
  Tensor x = cast(arange(40), kF32), there = to_device(x);
  add_into(x, x, 1);
  add_into(there, there, 1);
  EXPECT_SAME_BITS(to_host(there), x);
  add_into(x.slice(0, 1, 40), x.slice(0, 0, 39), 1);
  add_into(there.slice(0, 1, 40), there.slice(0, 0, 39), 1);
  EXPECT_SAME_BITS(to_host(there), x);
  accumulate(x, x.clone());
  accumulate(there, there.clone());
  EXPECT_SAME_BITS(to_host(there), x);
  add_scaled_into(x, x, 2, 0.5);
  add_scaled_into(there, there, 2, 0.5);
  EXPECT_SAME_BITS(to_host(there), x);
}

TEST_P(PointwiseOnDevice, CastsHaveTheCpusBits) {
  const Tensor values = tensor<double>({0,
                                        -0.0,
                                        1,
                                        -1,
                                        1.0009765625,
                                        2.5,
                                        3.5,
                                        -7.5,
                                        254.7,
                                        255.5,
                                        65504,
                                        65520,
                                        1e-8,
                                        6e-8,
                                        1e30,
                                        -1e30,
                                        1e-40,
                                        std::nan(""),
                                        INFINITY,
                                        -INFINITY,
                                        2147483648.0,
                                        1.00048828125001});
  for (DType from : kAll) {
    const Tensor x = cast(values, from), there = to_device(x);
    for (DType to : kAll) {
      SCOPED_TRACE(std::string(dtype_name(from)) + " to " + std::string(dtype_name(to)));
      EXPECT_SAME_BITS(to_host(cast(there, to)), cast(x, to));
      Tensor target = zeros({2, 22}, {to, device()}), wanted = zeros({2, 22}, {to});
      copy_into(target, there);
      copy_into(wanted, x);
      EXPECT_SAME_BITS(to_host(target), wanted);
      Tensor here = zeros({2, 22}, {to});
      copy_into(here, there);  // between devices
      EXPECT_SAME_BITS(here, wanted);
    }
  }
}

TEST_P(PointwiseOnDevice, Fills) {
  for (DType dtype : kAll) {
    Tensor x = zeros({3, 5}, {dtype}), there = to_device(x);
    fill(x.slice(1, 1, 4), 3);
    fill(there.slice(1, 1, 4), 3);
    EXPECT_SAME_BITS(to_host(there), x);
  }
}

TEST_P(PointwiseOnDevice, EmptyTensors) {
  const Tensor y = add(to_device(zeros({0, 3})), to_device(zeros({3})));
  EXPECT_EQ(y.shape(), (Shape{0, 3}));
  EXPECT_EQ(y.device(), device());
}

LOCKSTEP_ON_ALL_DEVICES(PointwiseOnDevice);

TEST(PointwiseDevices, TwoInOneCallAreNamed) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device, real or virtual";
  const Tensor here = zeros({2}), there = zeros({2}, {kF32, cuda_device()});
  const std::string wanted = "add: expected all tensors on one device but got f32 (2,) on ";
  EXPECT_HOLDS(message_of<Error>([&] { add(there, here); }), wanted);
  EXPECT_HOLDS(message_of<Error>([&] { add(here, there); }), wanted);
}

}  // namespace
}  // namespace lockstep::kernels
