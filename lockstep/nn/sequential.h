// Modules and functions one after another.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/nn/module.h"

namespace lockstep::nn {

// A function of one variable as a module: `nn::Functional(relu)`,
// `nn::Functional([](const Variable& x) { return softmax(x, 1); })`.
class FunctionalImpl : public Module {
 public:
  explicit FunctionalImpl(std::function<Variable(const Variable&)> f) : f_(std::move(f)) {}
  Variable forward(const Variable& x) { return f_(x); }

 private:
  std::function<Variable(const Variable&)> f_;
};
LOCKSTEP_MODULE(Functional);

// Children are named "0", "1", … unless given a name. A layer that can fuse a ReLU (relu_fusion.h)
// does so where a ReLU follows it. Write Sequential{a, b}, with braces: arguments in parentheses
// are evaluated, and so draw their initial weights, in an order that the compiler chooses.
class SequentialImpl : public Module {
 public:
  SequentialImpl() = default;
  // Module holders, shared pointers to modules, or functions Variable(const Variable&).
  template <class... Ms>
  requires(sizeof...(Ms) > 0) explicit SequentialImpl(Ms&&... modules) {
    (push_back(std::forward<Ms>(modules)), ...);
  }

  template <class M>
  void push_back(M&& module) {
    push_back(std::to_string(size()), std::forward<M>(module));
  }
  template <class M>
  void push_back(std::string name, M&& module) {
    using T = std::remove_cvref_t<M>;
    if constexpr (requires { typename T::ContainedType; })
      add(std::move(name), module.ptr());
    else if constexpr (std::is_invocable_r_v<Variable, M, const Variable&>)
      add(std::move(name), std::make_shared<FunctionalImpl>(std::forward<M>(module)));
    else
      add(std::move(name), std::forward<M>(module));
  }

  Variable forward(const Variable& x);

  std::size_t size() const { return steps_.size(); }
  bool is_empty() const { return steps_.empty(); }
  // Errors: an index past the end.
  const std::shared_ptr<Module>& operator[](std::size_t index) const;

 private:
  using Forward = std::function<Variable(const Variable&)>;

  template <class M>
  void add(std::string name, std::shared_ptr<M> module) {
    M* raw = module.get();
    add_step(std::move(name), std::move(module),
             [raw](const Variable& x) -> Variable { return raw->forward(x); });
  }
  void add_step(std::string name, std::shared_ptr<Module> module, Forward forward);

  std::vector<Forward> steps_;
};
LOCKSTEP_MODULE(Sequential);

}  // namespace lockstep::nn
