#include "lockstep/nn/sequential.h"

#include "lockstep/core/check.h"
#include "lockstep/nn/activation.h"
#include "lockstep/nn/relu_fusion.h"

namespace lockstep::nn {

void SequentialImpl::add_step(std::string name, std::shared_ptr<Module> module, Forward forward) {
  register_module(name, std::move(module));
  steps_.push_back(std::move(forward));
}

const std::shared_ptr<Module>& SequentialImpl::operator[](std::size_t index) const {
  LOCKSTEP_CHECK(index < size(), "Sequential: index {} of {} modules", index, size());
  return named_children()[index].second;
}

Variable SequentialImpl::forward(const Variable& x) {
  const auto& modules = named_children();
  Variable y = x;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    auto* layer = dynamic_cast<ReluFusion*>(modules[i].second.get());
    if (layer && i + 1 < steps_.size() && dynamic_cast<ReLUImpl*>(modules[i + 1].second.get())) {
      y = layer->forward_relu(y);
      ++i;
    } else {
      y = steps_[i](y);
    }
  }
  return y;
}

}  // namespace lockstep::nn
