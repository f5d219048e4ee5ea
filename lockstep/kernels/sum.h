// Sums and means over any axes (none given: all). Half types and f32 sum in f32, f64 in f64,
// integers and bool in i64; the order is reduction.h's. A sum of half values is rounded once, to
// the result's dtype, so it may be inf there where the f32 result (dtype = f32) is not.
#pragma once

#include <optional>

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// Result dtype: x's for floating, i64 for integers and bool, or the one asked for (the sum itself
// is then carried out in that dtype's compute type). Sum of nothing: 0.
Tensor sum(const Tensor& x, const Shape& axes = {}, bool keepdim = false,
           std::optional<DType> dtype = {});
// Floating only (or a floating dtype asked for): the sum divided by the count before it is rounded.
// Mean of nothing: NaN.
Tensor mean(const Tensor& x, const Shape& axes = {}, bool keepdim = false,
            std::optional<DType> dtype = {});

// Undoes a broadcast: sums x over the axes in which `shape` has size 1 or is missing. x itself if
// the shapes are alike.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace lockstep::kernels
