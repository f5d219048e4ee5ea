#include "lockstep/models/small_net.h"

#include "lockstep/autograd/ops/max_pool2d.h"
#include "lockstep/autograd/ops/view.h"
#include "lockstep/core/check.h"

namespace lockstep::models {

SmallNetImpl::SmallNetImpl(const ImageOptions& options) {
  LOCKSTEP_CHECK(options.height >= 10 && options.width >= 10,
                 "SmallNet: expected images of at least 10x10 but got {}x{}", options.height,
                 options.width);
  const auto rest = [](std::int64_t size) { return ((size - 2) / 2 - 2) / 2; };
  conv1 = register_module("conv1", nn::Conv2d(options.channels, 16, 3));
  conv2 = register_module("conv2", nn::Conv2d(16, 32, 3));
  fc1 = register_module("fc1", nn::Linear(32 * rest(options.height) * rest(options.width), 64));
  fc2 = register_module("fc2", nn::Linear(64, options.classes));
}

Variable SmallNetImpl::forward(const Variable& images) {
  Variable x = max_pool2d(conv1->forward_relu(images), 2);
  x = max_pool2d(conv2->forward_relu(x), 2, MemoryFormat::kContiguous);
  return fc2(fc1->forward_relu(flatten(x, 1)));
}

}  // namespace lockstep::models
