// Sums and means over any axes (none given: all). Accumulation, order, dtypes: kernels/sum.h.
//   sum: dx = dy broadcast        mean: dx = dy / count broadcast
#pragma once

#include <optional>

#include "lockstep/autograd/variable.h"

namespace lockstep {

Variable sum(const Variable& x, const Shape& axes = {}, bool keepdim = false,
             std::optional<DType> dtype = {});
Variable mean(const Variable& x, const Shape& axes = {}, bool keepdim = false,
              std::optional<DType> dtype = {});

}  // namespace lockstep
