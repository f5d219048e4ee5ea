#include "lockstep/models/mlp.h"

#include "lockstep/autograd/ops/view.h"
#include "lockstep/core/check.h"
#include "lockstep/nn/module_list.h"

namespace lockstep::models {

MlpImpl::MlpImpl(const std::vector<std::int64_t>& sizes) {
  LOCKSTEP_CHECK(sizes.size() >= 2, "Mlp: expected at least two sizes but got {}", sizes.size());
  const nn::ModuleList list = register_module("layers", nn::ModuleList());
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
    layers.push_back(list->push_back(nn::Linear(sizes[i], sizes[i + 1])));
}

Variable MlpImpl::forward(const Variable& x) {
  Variable y = flatten(x, 1);
  for (std::size_t i = 0; i + 1 < layers.size(); ++i) y = layers[i]->forward_relu(y);
  return layers.back()(y);
}

}  // namespace lockstep::models
