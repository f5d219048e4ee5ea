#include "lockstep/nn/pooling.h"

#include "lockstep/autograd/ops/adaptive_avg_pool2d.h"
#include "lockstep/autograd/ops/avg_pool2d.h"
#include "lockstep/autograd/ops/max_pool2d.h"

namespace lockstep::nn {

Variable MaxPool2dImpl::forward(const Variable& x) {
  const auto& o = options;
  return max_pool2d(x, kernels::Pool2dOptions{.kernel = {o.kernel_size().h, o.kernel_size().w},
                                              .stride = {o.stride().h, o.stride().w},
                                              .padding = {o.padding().h, o.padding().w},
                                              .dilation = {o.dilation().h, o.dilation().w},
                                              .ceil_mode = o.ceil_mode()});
}

Variable AvgPool2dImpl::forward(const Variable& x) {
  const auto& o = options;
  return avg_pool2d(
      x, kernels::AvgPool2dOptions{.window = {.kernel = {o.kernel_size().h, o.kernel_size().w},
                                              .stride = {o.stride().h, o.stride().w},
                                              .padding = {o.padding().h, o.padding().w},
                                              .ceil_mode = o.ceil_mode()},
                                   .count_include_pad = o.count_include_pad()});
}

Variable AdaptiveAvgPool2dImpl::forward(const Variable& x) {
  return adaptive_avg_pool2d(x, output_size.h, output_size.w);
}

}  // namespace lockstep::nn
