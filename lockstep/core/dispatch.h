// From a runtime DType to a C++ type.
//
//   visit_dtype(x.dtype(), [&]<class T>() { kernel(x.data<T>()); });
#pragma once

#include "lockstep/core/check.h"
#include "lockstep/core/dtype.h"
#include "lockstep/core/half.h"

namespace lockstep {

// Calls f.template operator()<T>() with any of the eight element types.
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF32:
      return f.template operator()<float>();
    case DType::kF64:
      return f.template operator()<double>();
    case DType::kF16:
      return f.template operator()<Half>();
    case DType::kBF16:
      return f.template operator()<BFloat16>();
    case DType::kI32:
      return f.template operator()<std::int32_t>();
    case DType::kI64:
      return f.template operator()<std::int64_t>();
    case DType::kU8:
      return f.template operator()<std::uint8_t>();
    case DType::kBool:
      return f.template operator()<bool>();
  }
  throw Error("unknown dtype");
}

// The same for floating types only; `op` names the operation in the error.
template <class F>
decltype(auto) visit_floating(DType dtype, std::string_view op, F&& f) {
  switch (dtype) {
    case DType::kF32:
      return f.template operator()<float>();
    case DType::kF64:
      return f.template operator()<double>();
    case DType::kF16:
      return f.template operator()<Half>();
    case DType::kBF16:
      return f.template operator()<BFloat16>();
    default:
      throw Error(fmt::format("{}: expected a floating dtype (f32, f64, f16, bf16) but got {}", op,
                              dtype_name(dtype)));
  }
}

}  // namespace lockstep
