// A model as the trainer sees it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "lockstep/autograd/variable.h"
#include "lockstep/nn/module.h"

namespace lockstep::train {

// A module together with its forward from a batch of images (N, C, H, W) to logits (N, classes).
class Trainable {
 public:
  Trainable(std::string name, std::shared_ptr<nn::Module> module,
            std::function<Variable(const Variable&)> forward)
      : name_(std::move(name)), module_(std::move(module)), forward_(std::move(forward)) {}
  // From a module with a forward of that form: Trainable("mlp", models::make_model("mlp")).
  template <class M>
  requires requires(M& m, const Variable& x) { m.forward(x); }
  Trainable(std::string name, std::shared_ptr<M> module)
      : Trainable(std::move(name), module,
                  [module](const Variable& x) { return module->forward(x); }) {}

  const std::string& name() const { return name_; }
  nn::Module& module() const { return *module_; }

  // What DistributedDataParallel asks of a model.
  nn::NamedVariables named_parameters() const { return module_->named_parameters(); }
  nn::NamedVariables named_buffers() const { return module_->named_buffers(); }
  bool is_training() const { return module_->is_training(); }
  Variable forward(const Variable& x) const { return forward_(x); }

 private:
  std::string name_;
  std::shared_ptr<nn::Module> module_;
  std::function<Variable(const Variable&)> forward_;
};

}  // namespace lockstep::train
