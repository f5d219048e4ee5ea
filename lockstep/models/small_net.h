// A small convolutional network without batch statistics: the gradient of a batch is the mean of
// its images' gradients, so any split of a batch over ranks has the gradient of the whole.
#pragma once

#include "lockstep/models/classifier.h"
#include "lockstep/nn/conv2d.h"
#include "lockstep/nn/linear.h"

namespace lockstep::models {

// conv 16, ReLU, max pool 2, conv 32, ReLU, max pool 2, flatten (800), linear 64, ReLU, linear 10;
// 3x3 kernels. Errors: images smaller than 10x10.
class SmallNetImpl : public Classifier {
 public:
  explicit SmallNetImpl(const ImageOptions& options = {});
  Variable forward(const Variable& images) override;

  nn::Conv2d conv1{nullptr};
  nn::Conv2d conv2{nullptr};
  nn::Linear fc1{nullptr};
  nn::Linear fc2{nullptr};
};
LOCKSTEP_MODULE(SmallNet);

}  // namespace lockstep::models
