// How far a device's result may lie from f64's, per dtype: some roundings of the dtype.
#pragma once

#include "lockstep/core/dtype.h"

namespace lockstep::testing {

inline double device_tolerance(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 1e-12;
    case DType::kF32:
      return 2e-5;
    case DType::kF16:
      return 2e-3;
    default:
      return 1.6e-2;
  }
}

}  // namespace lockstep::testing
