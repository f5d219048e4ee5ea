#include <cmath>
#include <cstring>
#include <limits>

#include "lockstep/core/dispatch.h"
#include "lockstep/kernels/convert.h"
#include "lockstep/kernels/convert_loops.h"

namespace lockstep::kernels {
namespace {

// The nearest f32 towards zero with the last bit set if anything was lost: rounding this to a
// narrower type is rounding the f64 itself.
float round_to_odd(double x) {
  const float f = static_cast<float>(x);
  if (std::isnan(x) || std::isinf(x) || static_cast<double>(f) == x) return f;
  float towards_zero = f;
  if (std::isinf(f) || std::abs(static_cast<double>(f)) > std::abs(x))
    towards_zero = bits_float(float_bits(f) - 1);
  return bits_float(float_bits(towards_zero) | 1);
}

template <class To>
To narrow(float x) {
  if constexpr (std::is_same_v<To, Half>)
    return Eigen::half(Eigen::half_impl::raw_uint16_to_half(narrow_f16(x).bits));
  else
    return Eigen::bfloat16(Eigen::bfloat16_impl::raw_uint16_to_bfloat16(narrow_bf16(x).bits));
}

template <class To>
To saturate(double x) {
  constexpr double kLow = static_cast<double>(std::numeric_limits<To>::min());
  // One past the largest value: a power of two, so exact.
  constexpr double kEnd = 2.0 * static_cast<double>(std::numeric_limits<To>::max() / 2 + 1);
  if (!(x == x)) return 0;
  if (x < kLow) return std::numeric_limits<To>::min();
  if (x >= kEnd) return std::numeric_limits<To>::max();
  return static_cast<To>(x);
}

template <class To, class From>
To convert(From x) {
  constexpr bool kToHalf = std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>;
  constexpr bool kFromFloating = is_floating(kDTypeOf<From>);
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<To, bool>) {
    return !(x == From(0));
  } else if constexpr (kToHalf) {
    if constexpr (std::is_same_v<From, float> || sizeof(From) == 2)
      return narrow<To>(static_cast<float>(x));
    else
      return narrow<To>(round_to_odd(static_cast<double>(x)));
  } else if constexpr (is_floating(kDTypeOf<To>)) {
    return static_cast<To>(x);
  } else if constexpr (kFromFloating) {
    return saturate<To>(static_cast<double>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To>
void convert_elements(const void* src, std::int64_t ss, void* dst, std::int64_t ds,
                      std::int64_t n) {
  const From* s = static_cast<const From*>(src);
  To* d = static_cast<To*>(dst);
  if (ss == 1 && ds == 1) {
    if constexpr (std::is_same_v<From, To>) {
      if (n > 0) std::memmove(static_cast<void*>(d), s, static_cast<std::size_t>(n) * sizeof(To));
    } else {
      for (std::int64_t i = 0; i < n; ++i) d[i] = convert<To>(s[i]);
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) d[i * ds] = convert<To>(s[i * ss]);
}

template <class Bits>
void widen_contiguous(const void* src, void* dst, std::int64_t n) {
  const Bits* s = static_cast<const Bits*>(src);
  float* d = static_cast<float*>(dst);
  switch (best_isa()) {
#if defined(__x86_64__)
    case Isa::kAvx512:
      return widen_run<Isa::kAvx512>(s, d, n);
    case Isa::kAvx2:
      return widen_run<Isa::kAvx2>(s, d, n);
#endif
    default:
      return widen_run<Isa::kBaseline>(s, d, n);
  }
}

template <class Bits>
void narrow_contiguous(const void* src, void* dst, std::int64_t n) {
  const float* s = static_cast<const float*>(src);
  Bits* d = static_cast<Bits*>(dst);
  switch (best_isa()) {
#if defined(__x86_64__)
    case Isa::kAvx512:
      return narrow_run<Isa::kAvx512>(s, d, n);
    case Isa::kAvx2:
      return narrow_run<Isa::kAvx2>(s, d, n);
#endif
    default:
      return narrow_run<Isa::kBaseline>(s, d, n);
  }
}

template <class From>
void widen_elements(const void* src, std::int64_t ss, void* dst, std::int64_t ds, std::int64_t n) {
  using Bits = std::conditional_t<std::is_same_v<From, Half>, F16Bits, BF16Bits>;
  if (ss == 1 && ds == 1) return widen_contiguous<Bits>(src, dst, n);
  const Bits* s = static_cast<const Bits*>(src);
  float* d = static_cast<float*>(dst);
  for (std::int64_t i = 0; i < n; ++i) d[i * ds] = widen(s[i * ss]);
}

template <class To>
void narrow_elements(const void* src, std::int64_t ss, void* dst, std::int64_t ds, std::int64_t n) {
  using Bits = std::conditional_t<std::is_same_v<To, Half>, F16Bits, BF16Bits>;
  if (ss == 1 && ds == 1) return narrow_contiguous<Bits>(src, dst, n);
  convert_elements<float, To>(src, ss, dst, ds, n);
}

template <class From>
ConvertRun convert_from(DType to) {
  return visit_dtype(to, []<class To>() -> ConvertRun {
    if constexpr (std::is_same_v<To, float> && is_floating(kDTypeOf<From>) && sizeof(From) == 2)
      return &widen_elements<From>;
    else if constexpr (std::is_same_v<From, float> && sizeof(To) == 2)
      return &narrow_elements<To>;
    else
      return &convert_elements<From, To>;
  });
}

}  // namespace

ConvertRun convert_run(DType from, DType to) {
  return visit_dtype(from, [to]<class From>() { return convert_from<From>(to); });
}

}  // namespace lockstep::kernels
