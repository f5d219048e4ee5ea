// Modules that only reshape, or do nothing.
#pragma once

#include "lockstep/nn/module.h"

namespace lockstep::nn {

class FlattenOptions {
 public:
  FlattenOptions& start_dim(std::int64_t axis) { return start_dim_ = axis, *this; }
  FlattenOptions& end_dim(std::int64_t axis) { return end_dim_ = axis, *this; }
  std::int64_t start_dim() const { return start_dim_; }
  std::int64_t end_dim() const { return end_dim_; }

 private:
  std::int64_t start_dim_ = 1;
  std::int64_t end_dim_ = -1;
};

// Joins the axes start_dim … end_dim (in logical order: C, H, W for an image in any layout).
class FlattenImpl : public Module {
 public:
  explicit FlattenImpl(const FlattenOptions& given = {}) : options(given) {}
  Variable forward(const Variable& x);

  FlattenOptions options;
};
LOCKSTEP_MODULE(Flatten);

class IdentityImpl : public Module {
 public:
  Variable forward(const Variable& x) { return x; }
};
LOCKSTEP_MODULE(Identity);

}  // namespace lockstep::nn
