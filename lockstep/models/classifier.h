// What image classifiers have in common, so that a program can choose one by name.
#pragma once

#include <cstdint>

#include "lockstep/nn/module.h"

namespace lockstep::models {

// Images (N, channels, height, width) to logits (N, classes). The defaults are MNIST's.
struct ImageOptions {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t classes = 10;
};

class Classifier : public nn::Module {
 public:
  virtual Variable forward(const Variable& images) = 0;
};

}  // namespace lockstep::models
