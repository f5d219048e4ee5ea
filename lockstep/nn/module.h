// The base of every layer and model: a tree of named modules, parameters and buffers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/autograd/variable.h"
#include "lockstep/nn/module_holder.h"

namespace lockstep::nn {

using NamedVariables = std::vector<std::pair<std::string, Variable>>;
using StateDict = std::map<std::string, Tensor>;  // what safetensors files hold

// Keys by which a state dict and a module differ.
struct IncompatibleKeys {
  std::vector<std::string> missing;     // in the module only
  std::vector<std::string> unexpected;  // in the state dict only
};

// Subclasses register what they own in their constructor and have a forward(...). Names are paths
// ("layer1.conv.weight"), lists are in order of registration, own entries before those of children
// (PyTorch's order). What is registered in two places is one thing: lists hold it once, under the
// first of its names; only state_dict() has all names.
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Each returns a handle on what it registered. Errors: an empty name or one with a dot, a name
  // that is taken, an empty module, a module inside itself.
  Variable register_parameter(const std::string& name, Variable value, bool requires_grad = true);
  Variable register_buffer(const std::string& name, Tensor value);
  template <class M>
  std::shared_ptr<M> register_module(const std::string& name, std::shared_ptr<M> module) {
    add_module(name, module);
    return module;
  }
  // Returns the holder given: `conv = register_module("conv", nn::Conv2d(...))`.
  template <class Holder>
  requires requires(const Holder& h) { typename Holder::ContainedType; }
  Holder register_module(const std::string& name, Holder holder) {
    add_module(name, holder.is_empty() ? nullptr : holder.ptr());
    return holder;
  }

  std::vector<Variable> parameters() const;
  NamedVariables named_parameters() const;
  std::vector<Variable> buffers() const;
  NamedVariables named_buffers() const;
  // Direct children.
  std::vector<std::shared_ptr<Module>> children() const;
  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& named_children() const {
    return children_;
  }
  // This module (named "") and all below, parents first; pointers live as long as the tree.
  std::vector<std::pair<std::string, Module*>> named_modules();
  // f on every module of the tree, children first (PyTorch's order).
  void apply(const std::function<void(Module&)>& f);

  // Of the whole tree. Training is what a new module starts with.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }
  void zero_grad(bool set_to_none = true);
  // Whether parameters want gradients.
  void requires_grad_(bool on = true);
  // Parameters and buffers of a floating dtype become `dtype`; gradients are dropped. Handles that
  // others hold (an optimizer's, a member's) see the change. recurse = false: this module alone.
  void to(DType dtype, bool recurse = true);
  // Parameters and buffers of the whole tree go to the device; gradients are dropped. Before the
  // optimizer and DDP are made. Handles that others hold see the change.
  void to(Device device);
  // Elements of all parameters.
  std::int64_t parameter_count() const;

  // Handles on the values of all parameters and buffers (not copies) under all their names.
  StateDict state_dict() const;
  // Copies values in, converting dtypes. A variable with several names needs one of them; values
  // that differ between its names are an error. All is checked first: after an error nothing has
  // changed. Errors: a shape that differs (always); strict: a missing or unexpected key. The
  // message lists all of them by name.
  IncompatibleKeys load_state_dict(const StateDict& state, bool strict = true);

 private:
  enum class Kind { kParameter, kBuffer };
  using Visitor = std::function<void(const std::string& name, const Variable& variable, Kind kind)>;

  void add_module(const std::string& name, std::shared_ptr<Module> module);
  void check_name(const std::string& name, const char* what) const;
  // Every registered name, shared ones again and again, with `prefix` before each.
  void visit(const std::string& prefix, const Visitor& visitor) const;
  NamedVariables unique(Kind kind) const;
  bool contains(const Module* other) const;

  NamedVariables parameters_;
  NamedVariables buffers_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  bool training_ = true;
};

}  // namespace lockstep::nn
