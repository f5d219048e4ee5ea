#include "lockstep/nn/dropout.h"

#include "lockstep/autograd/ops/dropout.h"
#include "lockstep/core/check.h"

namespace lockstep::nn {

DropoutImpl::DropoutImpl(const DropoutOptions& given) : options(given) {
  LOCKSTEP_CHECK(options.p() >= 0 && options.p() <= 1, "Dropout: p must be in [0, 1], got {}",
                 options.p());
}

Variable DropoutImpl::forward(const Variable& x) { return dropout(x, options.p(), is_training()); }

}  // namespace lockstep::nn
