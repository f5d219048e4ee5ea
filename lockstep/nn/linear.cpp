#include "lockstep/nn/linear.h"

#include "lockstep/autograd/ops/linear.h"
#include "lockstep/core/check.h"
#include "lockstep/nn/init.h"

namespace lockstep::nn {

LinearImpl::LinearImpl(const LinearOptions& given) : options(given) {
  const std::int64_t in = options.in_features(), out = options.out_features();
  LOCKSTEP_CHECK(in >= 0 && out >= 0, "Linear: features must not be negative, got {} and {}", in,
                 out);
  weight = register_parameter("weight", empty({out, in}));
  if (options.bias()) bias = register_parameter("bias", empty({out}));
  reset_parameters();
}

void LinearImpl::reset_parameters() { init::default_weight_and_bias_(weight, bias); }

Variable LinearImpl::forward(const Variable& x) { return linear(x, weight, bias); }
Variable LinearImpl::forward_relu(const Variable& x) { return linear_relu(x, weight, bias); }

}  // namespace lockstep::nn
