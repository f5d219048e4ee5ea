// The recipe's network for 28x28 digits: four convolutions, two linear layers, 5.75 million
// parameters.
#pragma once

#include "lockstep/models/classifier.h"
#include "lockstep/nn/batch_norm.h"
#include "lockstep/nn/conv2d.h"
#include "lockstep/nn/linear.h"

namespace lockstep::models {

// conv 64, BN, ReLU, conv 128, BN, ReLU, max pool 2, conv 256, BN, ReLU, conv 512, BN, ReLU,
// max pool 2, flatten (8192), linear 512, BN, ReLU, linear 10; 3x3 kernels, stride 1, no padding.
// Parameters are drawn in this order, as a PyTorch module with the same members draws them.
// Errors: images smaller than 16x16.
class ToyNetImpl : public Classifier {
 public:
  explicit ToyNetImpl(const ImageOptions& options = {});
  Variable forward(const Variable& images) override;

  nn::Conv2d conv1{nullptr};
  nn::BatchNorm2d bn1{nullptr};
  nn::Conv2d conv2{nullptr};
  nn::BatchNorm2d bn2{nullptr};
  nn::Conv2d conv3{nullptr};
  nn::BatchNorm2d bn3{nullptr};
  nn::Conv2d conv4{nullptr};
  nn::BatchNorm2d bn4{nullptr};
  nn::Linear fc1{nullptr};
  nn::BatchNorm1d bn5{nullptr};
  nn::Linear fc2{nullptr};
};
LOCKSTEP_MODULE(ToyNet);

}  // namespace lockstep::models
