// A number outside a tensor, as exact as an element can be: a whole one or a real one.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace lockstep {

// It knows whether it was written as an integer, for the result's dtype: an i64 tensor plus 2 is
// i64, plus 2.0 it is f32. Every dtype's elements fit.
class Scalar {
 public:
  template <std::integral Integer>
  Scalar(Integer value)  // NOLINT(google-explicit-constructor)
      : real_(static_cast<double>(value)),
        integer_(static_cast<std::int64_t>(value)),
        is_integer_(true) {}
  template <std::floating_point Real>
  Scalar(Real value) : real_(static_cast<double>(value)) {}  // NOLINT(google-explicit-constructor)

  bool is_integer() const { return is_integer_; }
  double real() const { return real_; }
  std::int64_t integer() const { return integer_; }  // only if is_integer()

  // The value as a T: bool is whether it is not 0; an integer is the value exactly, a real one cut
  // towards 0, and Error is thrown where T can't hold that; a floating-point T is the nearest one.
  template <class T>
  requires std::is_arithmetic_v<T> T to()
  const {
    if constexpr (std::is_same_v<T, bool>) {
      return is_integer_ ? integer_ != 0 : real_ != 0;
    } else if constexpr (std::is_integral_v<T>) {
      return is_integer_ ? from_integer<T>() : from_real<T>();
    } else {
      return is_integer_ ? static_cast<T>(integer_) : static_cast<T>(real_);
    }
  }

 private:
  template <class T>
  T from_integer() const {
    constexpr std::int64_t kLeast = std::is_signed_v<T> ? std::numeric_limits<T>::min() : 0;
    const bool fits = integer_ >= kLeast &&
                      (sizeof(T) >= sizeof(integer_) ||
                       integer_ <= static_cast<std::int64_t>(std::numeric_limits<T>::max()));
    if (!fits) does_not_fit(sizeof(T), std::is_signed_v<T>);
    return static_cast<T>(integer_);
  }
  template <class T>
  T from_real() const {
    // Both ends are exact in double, the upper one being the power of two after the greatest value;
    // NaN is in no range. What lies less than 1 below the least value is cut to it.
    constexpr double kEnd = 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
    constexpr double kLeast = static_cast<double>(std::numeric_limits<T>::min());
    const bool fits = real_ < kEnd && (real_ >= kLeast || real_ - kLeast > -1.0);
    if (!fits) does_not_fit(sizeof(T), std::is_signed_v<T>);
    return static_cast<T>(real_);
  }
  [[noreturn]] void does_not_fit(std::size_t bytes, bool is_signed) const;

  double real_;
  std::int64_t integer_ = 0;
  bool is_integer_ = false;
};

}  // namespace lockstep
