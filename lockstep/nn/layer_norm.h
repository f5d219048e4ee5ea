// Layer normalisation over the trailing axes.
#pragma once

#include <vector>

#include "lockstep/nn/module.h"

namespace lockstep::nn {

class LayerNormOptions {
 public:
  LayerNormOptions(const Shape& normalized_shape)  // NOLINT(google-explicit-constructor)
      : normalized_shape_(normalized_shape) {}
  LayerNormOptions(std::int64_t size)  // NOLINT(google-explicit-constructor)
      : normalized_shape_({size}) {}

  LayerNormOptions& eps(double eps) { return eps_ = eps, *this; }
  LayerNormOptions& elementwise_affine(bool on) { return elementwise_affine_ = on, *this; }
  LayerNormOptions& bias(bool on) { return bias_ = on, *this; }

  const Shape& normalized_shape() const { return normalized_shape_; }
  double eps() const { return eps_; }
  bool elementwise_affine() const { return elementwise_affine_; }
  bool bias() const { return bias_; }

 private:
  Shape normalized_shape_;
  double eps_ = 1e-5;
  bool elementwise_affine_ = true;
  bool bias_ = true;
};

// Parameters of the normalized shape: weight = 1, bias = 0 (undefined where switched off).
class LayerNormImpl : public Module {
 public:
  explicit LayerNormImpl(const LayerNormOptions& options);

  void reset_parameters();
  Variable forward(const Variable& x);

  LayerNormOptions options;
  Variable weight, bias;
};
LOCKSTEP_MODULE(LayerNorm);

}  // namespace lockstep::nn
