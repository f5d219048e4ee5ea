#include "lockstep/optim/clip_grad.h"

#include <cmath>
#include <set>
#include <vector>

#include "lockstep/core/check.h"
#include "lockstep/kernels/clip_grad.h"

namespace lockstep::optim {
namespace {

std::vector<Tensor> gradients_of(std::span<const Variable> parameters) {
  std::vector<Tensor> gradients;
  std::set<const void*> seen;
  for (const Variable& p : parameters)
    if (p.defined() && p.grad().defined() && seen.insert(p.id()).second)
      gradients.push_back(p.grad());
  return gradients;
}

}  // namespace

double clip_grad_norm_(std::span<const Variable> parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  LOCKSTEP_CHECK(max_norm >= 0, "clip_grad_norm_: max_norm must not be negative but is {}",
                 max_norm);
  const std::vector<Tensor> gradients = gradients_of(parameters);
  const double norm = kernels::grad_norm(gradients, norm_type);
  LOCKSTEP_CHECK(std::isfinite(norm) || !error_if_nonfinite,
                 "clip_grad_norm_: the norm of the gradients is {}", norm);
  const double factor = max_norm / (norm + 1e-6);
  if (std::isfinite(norm) && factor < 1) kernels::scale_in_place(gradients, factor);
  return norm;
}

void clip_grad_value_(std::span<const Variable> parameters, double clip_value) {
  LOCKSTEP_CHECK(clip_value >= 0, "clip_grad_value_: clip_value must not be negative but is {}",
                 clip_value);
  kernels::clamp_in_place(gradients_of(parameters), clip_value);
}

}  // namespace lockstep::optim
