// Element-wise comparison of tensors for tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "lockstep/core/dispatch.h"
#include "lockstep/core/tensor.h"

namespace lockstep::testing {

// Element i (row-major over the logical shape) as double, whatever layout and dtype.
inline double element(const Tensor& t, std::int64_t i) {
  Tensor c = t.contiguous();
  return visit_dtype(c.dtype(), [&]<class T>() { return static_cast<double>(c.data<T>()[i]); });
}

// |actual - expected| <= atol + rtol * |expected| for each element; NaN equals NaN.
inline ::testing::AssertionResult close(const Tensor& actual, const Tensor& expected, double rtol,
                                        double atol) {
  if (actual.shape() != expected.shape())
    return ::testing::AssertionFailure()
           << "shape " << actual.shape().str() << ", wanted " << expected.shape().str();
  const Tensor a = actual.contiguous(), e = expected.contiguous();
  std::int64_t bad = 0, first = -1;
  double worst = 0;
  const std::int64_t n = a.numel();
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = element(a, i), y = element(e, i);
    if ((std::isnan(x) && std::isnan(y)) || x == y) continue;
    const double difference = std::abs(x - y);
    if (difference <= atol + rtol * std::abs(y)) continue;
    ++bad;
    if (first < 0) first = i;
    worst = std::max(worst, difference);
  }
  if (bad == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << bad << " of " << a.numel() << " elements differ, first at " << first << ": "
         << element(a, first) << ", wanted " << element(e, first) << "; worst difference " << worst;
}

// Same dtype, shape and bytes.
inline ::testing::AssertionResult same_bits(const Tensor& actual, const Tensor& expected) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape())
    return ::testing::AssertionFailure() << "dtype or shape differ";
  const Tensor a = actual.contiguous(), e = expected.contiguous();
  if (a.nbytes() > 0 && std::memcmp(a.data(), e.data(), a.nbytes()) != 0)
    return ::testing::AssertionFailure() << "bytes differ: " << close(a, e, 0, 0).message();
  return ::testing::AssertionSuccess();
}

}  // namespace lockstep::testing

#define EXPECT_CLOSE(actual, expected, rtol, atol) \
  EXPECT_TRUE(::lockstep::testing::close(actual, expected, rtol, atol))
#define EXPECT_SAME_BITS(actual, expected) \
  EXPECT_TRUE(::lockstep::testing::same_bits(actual, expected))
