// Dropout: zeroes elements at random while training, does nothing in evaluation.
#pragma once

#include "lockstep/nn/module.h"

namespace lockstep::nn {

class DropoutOptions {
 public:
  DropoutOptions(double p = 0.5) : p_(p) {}  // NOLINT(google-explicit-constructor)

  DropoutOptions& p(double p) { return p_ = p, *this; }
  double p() const { return p_; }

 private:
  double p_;
};

// Draws from the calling thread's default generator (its Philox sequence, so that masks of ranks
// with different streams differ). Errors: p outside [0, 1].
class DropoutImpl : public Module {
 public:
  explicit DropoutImpl(const DropoutOptions& options = {});

  Variable forward(const Variable& x);

  DropoutOptions options;
};
LOCKSTEP_MODULE(Dropout);

}  // namespace lockstep::nn
