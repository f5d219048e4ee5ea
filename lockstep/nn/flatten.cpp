#include "lockstep/nn/flatten.h"

#include "lockstep/autograd/ops/view.h"

namespace lockstep::nn {

Variable FlattenImpl::forward(const Variable& x) {
  return flatten(x, options.start_dim(), options.end_dim());
}

}  // namespace lockstep::nn
