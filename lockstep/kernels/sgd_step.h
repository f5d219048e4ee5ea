// One SGD step over many parameters in one pass (torch.optim.SGD's arithmetic).
#pragma once

#include <span>

#include "lockstep/core/tensor.h"
#include "lockstep/kernels/isa.h"

namespace lockstep::kernels {

// Per element, with g the gradient and p the parameter:
//   g = g * grad_scale                         (negated to maximize)
//   g = g + weight_decay * p
//   v = momentum * v + (1 - dampening) * g     (first step of a segment: v = g)
//   p = p - lr * v                             plain momentum
//   p = p - lr * (g + momentum * v)            Nesterov
//   p = p - lr * g                             momentum 0: no v
// The rate multiplies v outside, so that a change of the rate acts at once on the whole velocity
// (Sutskever et al. 2013 scale inside; PyTorch documents the form used here).
struct SgdConfig {
  double lr = 0;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  double grad_scale = 1;
};

struct SgdSegment {
  Tensor param;     // any shape, dense, floating
  Tensor grad;      // as param: dtype, shape and strides
  Tensor momentum;  // as param in shape and strides, dtype state_dtype; undefined if momentum is 0
  bool first = false;
};

// Overwrites param and momentum (=) and bumps their versions; grad is read only. Arithmetic in f32
// for f16, bf16 and f32, in f64 for f64. Segments may not overlap. Throws Error for other dtypes or
// where the layouts differ. Same bits with every instruction set and number of threads.
void sgd_step(std::span<const SgdSegment> segments, const SgdConfig& config, Isa isa = best_isa());

}  // namespace lockstep::kernels
