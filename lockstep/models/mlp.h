// Linear layers with ReLU between them.
#pragma once

#include <vector>

#include "lockstep/models/classifier.h"
#include "lockstep/nn/linear.h"

namespace lockstep::models {

// x (N, …) with prod(…) = sizes[0] is flattened and goes through layers sizes[i] -> sizes[i+1],
// named layers.0, layers.1, … Errors: fewer than two sizes.
class MlpImpl : public Classifier {
 public:
  explicit MlpImpl(const std::vector<std::int64_t>& sizes);
  Variable forward(const Variable& x) override;

  std::vector<nn::Linear> layers;
};
LOCKSTEP_MODULE(Mlp);

}  // namespace lockstep::models
