// y = x Wᵀ + b.
#pragma once

#include "lockstep/nn/module.h"
#include "lockstep/nn/relu_fusion.h"

namespace lockstep::nn {

class LinearOptions {
 public:
  LinearOptions(std::int64_t in_features, std::int64_t out_features)
      : in_features_(in_features), out_features_(out_features) {}

  LinearOptions& bias(bool on) { return bias_ = on, *this; }

  std::int64_t in_features() const { return in_features_; }
  std::int64_t out_features() const { return out_features_; }
  bool bias() const { return bias_; }

 private:
  std::int64_t in_features_, out_features_;
  bool bias_ = true;
};

// x (…, in_features) to (…, out_features). Parameters: weight (out, in) from kaiming_uniform with
// a = sqrt(5), bias (out) from U(-1/sqrt(in), 1/sqrt(in)). Errors: negative sizes.
class LinearImpl : public Module, public ReluFusion {
 public:
  LinearImpl(std::int64_t in_features, std::int64_t out_features)
      : LinearImpl(LinearOptions(in_features, out_features)) {}
  explicit LinearImpl(const LinearOptions& options);

  void reset_parameters();
  Variable forward(const Variable& x);
  Variable forward_relu(const Variable& x) override;

  LinearOptions options;
  Variable weight;
  Variable bias;  // undefined without one
};
LOCKSTEP_MODULE(Linear);

}  // namespace lockstep::nn
