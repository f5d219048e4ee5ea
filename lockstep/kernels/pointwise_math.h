// The maths of every element-wise op, written once as functors on scalars for all devices. T is the
// type that an op computes in: float (also for the half types), double, or std::int64_t (all
// integers and bool). A functor's call operator takes the op's inputs in order.
#pragma once

#include "lockstep/kernels/pointwise_activation.h"      // IWYU pragma: export
#include "lockstep/kernels/pointwise_arithmetic.h"      // IWYU pragma: export
#include "lockstep/kernels/pointwise_comparison.h"      // IWYU pragma: export
#include "lockstep/kernels/pointwise_transcendental.h"  // IWYU pragma: export
