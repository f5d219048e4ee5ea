// One Adam or AdamW step over many parameters in one pass (torch.optim.Adam's arithmetic).
#pragma once

#include <span>

#include "lockstep/core/tensor.h"
#include "lockstep/kernels/isa.h"

namespace lockstep::kernels {

// Per element, with g the gradient, p the parameter, t = step (from 1):
//   g = g * grad_scale                           (negated to maximize)
//   g = g + weight_decay * p                     Adam (L2 in the gradient)
//   p = p * (1 - lr * weight_decay)              AdamW (decoupled, before the step)
//   m = m + (1 - beta1) * (g - m)
//   v = beta2 * v + (1 - beta2) * g * g
//   d = sqrt(amsgrad ? vmax = max(vmax, v) : v) / sqrt(1 - beta2^t) + eps
//   p = p - lr / (1 - beta1^t) * m / d
// Sources: Kingma & Ba 2015; Loshchilov & Hutter 2019; Reddi et al. 2018 (amsgrad).
struct AdamConfig {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;
  bool amsgrad = false;
  bool maximize = false;
  double grad_scale = 1;
};

struct AdamSegment {
  Tensor param;           // any shape, dense, floating
  Tensor grad;            // as param: dtype, shape and strides
  Tensor exp_avg;         // m; as param in shape and strides, dtype state_dtype
  Tensor exp_avg_sq;      // v; likewise
  Tensor max_exp_avg_sq;  // vmax; likewise, undefined without amsgrad
  std::int64_t step = 1;  // number of this step, from 1
};

// Overwrites param and the state (=) and bumps their versions; grad is read only. Arithmetic in f32
// for f16, bf16 and f32, in f64 for f64; the bias corrections in f64. Segments may not overlap.
// Throws Error for other dtypes or where the layouts differ. Same bits with every instruction set
// and number of threads.
void adam_step(std::span<const AdamSegment> segments, const AdamConfig& config,
               Isa isa = best_isa());

}  // namespace lockstep::kernels
