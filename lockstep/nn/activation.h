// Element-wise activations as modules. Formulas: lockstep/kernels/pointwise_math.h.
#pragma once

#include <string>
#include <utility>

#include "lockstep/nn/module.h"

namespace lockstep::nn {

class ReLUImpl : public Module {
 public:
  Variable forward(const Variable& x);
};
LOCKSTEP_MODULE(ReLU);

class SigmoidImpl : public Module {
 public:
  Variable forward(const Variable& x);
};
LOCKSTEP_MODULE(Sigmoid);

class TanhImpl : public Module {
 public:
  Variable forward(const Variable& x);
};
LOCKSTEP_MODULE(Tanh);

class SiLUImpl : public Module {
 public:
  Variable forward(const Variable& x);
};
LOCKSTEP_MODULE(SiLU);

class GELUOptions {
 public:
  // "none" (exact) or "tanh".
  GELUOptions& approximate(std::string kind) { return approximate_ = std::move(kind), *this; }
  const std::string& approximate() const { return approximate_; }

 private:
  std::string approximate_ = "none";
};

// Errors: an approximation by another name.
class GELUImpl : public Module {
 public:
  explicit GELUImpl(const GELUOptions& options = {});
  Variable forward(const Variable& x);

  GELUOptions options;
};
LOCKSTEP_MODULE(GELU);

}  // namespace lockstep::nn
