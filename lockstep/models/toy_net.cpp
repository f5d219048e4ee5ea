#include "lockstep/models/toy_net.h"

#include "lockstep/autograd/ops/view.h"
#include "lockstep/core/check.h"

namespace lockstep::models {

ToyNetImpl::ToyNetImpl(const ImageOptions& options) {
  LOCKSTEP_CHECK(options.height >= 16 && options.width >= 16,
                 "ToyNet: expected images of at least 16x16 but got {}x{}", options.height,
                 options.width);
  const auto rest = [](std::int64_t size) { return ((size - 4) / 2 - 4) / 2; };
  conv1 = register_module("conv1", nn::Conv2d(options.channels, 64, 3));
  bn1 = register_module("bn1", nn::BatchNorm2d(64));
  conv2 = register_module("conv2", nn::Conv2d(64, 128, 3));
  bn2 = register_module("bn2", nn::BatchNorm2d(128));
  conv3 = register_module("conv3", nn::Conv2d(128, 256, 3));
  bn3 = register_module("bn3", nn::BatchNorm2d(256));
  conv4 = register_module("conv4", nn::Conv2d(256, 512, 3));
  bn4 = register_module("bn4", nn::BatchNorm2d(512));
  fc1 = register_module("fc1", nn::Linear(512 * rest(options.height) * rest(options.width), 512));
  bn5 = register_module("bn5", nn::BatchNorm1d(512));
  fc2 = register_module("fc2", nn::Linear(512, options.classes));
}

Variable ToyNetImpl::forward(const Variable& images) {
  Variable x = bn1->forward_relu(conv1(images));
  x = bn2->forward_relu_max_pool(conv2(x), 2);
  x = bn3->forward_relu(conv3(x));
  // Contiguous is the order that flatten reads.
  x = bn4->forward_relu_max_pool(conv4(x), 2, MemoryFormat::kContiguous);
  x = bn5->forward_relu(fc1(flatten(x, 1)));
  return fc2(x);
}

}  // namespace lockstep::models
