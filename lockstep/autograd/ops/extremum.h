// Largest and smallest elements. NaN counts as the greatest and is never hidden; of equal elements
// the first counts. Rules: kernels/extremum.h.
#pragma once

#include <utility>

#include "lockstep/autograd/variable.h"

namespace lockstep {

// Over any axes (none given: all). Elements that tie share the gradient evenly.
Variable amax(const Variable& x, const Shape& axes = {}, bool keepdim = false);
Variable amin(const Variable& x, const Shape& axes = {}, bool keepdim = false);
Variable max(const Variable& x);
Variable min(const Variable& x);

// Values and indices (i64) along one axis; the gradient goes to the element at the index.
std::pair<Variable, Variable> max(const Variable& x, std::int64_t axis, bool keepdim = false);
std::pair<Variable, Variable> min(const Variable& x, std::int64_t axis, bool keepdim = false);

// Indices (i64). Without an axis: into the row-major order of all elements.
Variable argmax(const Variable& x);
Variable argmax(const Variable& x, std::int64_t axis, bool keepdim = false);
Variable argmin(const Variable& x);
Variable argmin(const Variable& x, std::int64_t axis, bool keepdim = false);

// bool.
Variable any(const Variable& x, const Shape& axes = {}, bool keepdim = false);
Variable all(const Variable& x, const Shape& axes = {}, bool keepdim = false);

}  // namespace lockstep
