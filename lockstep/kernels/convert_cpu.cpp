#include <cstring>
#include <type_traits>

#include "lockstep/core/dispatch.h"
#include "lockstep/kernels/convert.h"
#include "lockstep/kernels/convert_element.h"
#include "lockstep/kernels/convert_loops.h"

namespace lockstep::kernels {
namespace {

// Eigen's half types as the bits that convert_element.h knows.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, Half>, F16Bits,
                                  std::conditional_t<std::is_same_v<T, BFloat16>, BF16Bits, T>>;

template <class From, class To>
void convert_elements(const void* src, std::int64_t ss, void* dst, std::int64_t ds,
                      std::int64_t n) {
  const auto* s = static_cast<const Stored<From>*>(src);
  auto* d = static_cast<Stored<To>*>(dst);
  if (ss == 1 && ds == 1) {
    if constexpr (std::is_same_v<From, To>) {
      if (n > 0) std::memmove(static_cast<void*>(d), s, static_cast<std::size_t>(n) * sizeof(To));
    } else {
      for (std::int64_t i = 0; i < n; ++i) d[i] = convert_element<Stored<To>>(s[i]);
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) d[i * ds] = convert_element<Stored<To>>(s[i * ss]);
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
