#include "lockstep/nn/conv2d.h"

#include "lockstep/autograd/ops/conv2d.h"
#include "lockstep/core/check.h"
#include "lockstep/nn/init.h"

namespace lockstep::nn {
namespace {

kernels::Conv2dOptions kernel_options(const Conv2dOptions& o) {
  return {.stride = {o.stride().h, o.stride().w},
          .padding = {o.padding().h, o.padding().w},
          .dilation = {o.dilation().h, o.dilation().w},
          .groups = o.groups()};
}

}  // namespace

Conv2dImpl::Conv2dImpl(const Conv2dOptions& given) : options(given) {
  const auto& o = options;
  LOCKSTEP_CHECK(o.groups() >= 1 && o.in_channels() >= 1 && o.out_channels() >= 1 &&
                     o.in_channels() % o.groups() == 0 && o.out_channels() % o.groups() == 0,
                 "Conv2d: {} input and {} output channels can't be split into {} groups",
                 o.in_channels(), o.out_channels(), o.groups());
  const auto at_least = [](Size2 size, std::int64_t least, const char* name) {
    LOCKSTEP_CHECK(size.h >= least && size.w >= least, "Conv2d: {} must be at least {}, got {}x{}",
                   name, least, size.h, size.w);
  };
  at_least(o.kernel_size(), 1, "kernel_size");
  at_least(o.stride(), 1, "stride");
  at_least(o.padding(), 0, "padding");
  at_least(o.dilation(), 1, "dilation");
  weight = register_parameter("weight", empty({o.out_channels(), o.in_channels() / o.groups(),
                                               o.kernel_size().h, o.kernel_size().w}));
  if (o.bias()) bias = register_parameter("bias", empty({o.out_channels()}));
  reset_parameters();
}

void Conv2dImpl::reset_parameters() { init::default_weight_and_bias_(weight, bias); }

Variable Conv2dImpl::forward(const Variable& x) {
  return conv2d(x, weight, bias, kernel_options(options));
}

Variable Conv2dImpl::forward_relu(const Variable& x) {
  return conv2d_relu(x, weight, bias, kernel_options(options));
}

}  // namespace lockstep::nn
