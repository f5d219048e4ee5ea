// A small model for tests of DDP: named scalars, of which each forward uses those it is told to.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/product.h"
#include "lockstep/dist/ddp.h"

namespace lockstep::testing {

inline Tensor add_tensors(const Tensor& a, const Tensor& b) {
  Tensor y = empty_like(a);
  for (std::int64_t i = 0; i < a.numel(); ++i)
    y.data<float>()[i] = a.data<float>()[i] + b.data<float>()[i];
  return y;
}

inline Variable sum_of(const Variable& a, const Variable& b) {
  return record("sum_of", add_tensors(a.data(), b.data()), inputs(a, b), [&](const Tensor&) {
    return [](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return dy; });
      dx.set(1, [&] { return dy; });
    };
  });
}

// forward(coefficients) = Σ coefficients[i] · parameter[i] over those with a coefficient other than
// 0, so that the gradient of parameter i is coefficients[i].
class LinearModel {
 public:
  explicit LinearModel(const std::vector<std::string>& names, std::int64_t width = 1,
                       float first = 1) {
    for (const std::string& name : names)
      parameters_.emplace_back(name, Variable(full({width}, first++), true));
    buffers_.emplace_back("seen", zeros({1}));
  }

  std::vector<std::pair<std::string, Variable>>& named_parameters() { return parameters_; }
  std::vector<std::pair<std::string, Tensor>>& named_buffers() { return buffers_; }
  bool is_training() const { return training; }

  Variable forward(const std::vector<float>& coefficients) {
    Variable y;
    for (std::size_t i = 0; i < coefficients.size(); ++i) {
      if (coefficients[i] == 0) continue;
      const Variable& p = parameters_[i].second;
      Variable term = product(p, Variable(full(p.shape(), coefficients[i])));
      y = y.defined() ? sum_of(y, term) : term;
    }
    return y;
  }

  Variable& operator[](std::size_t i) { return parameters_[i].second; }
  float grad(std::size_t i) { return parameters_[i].second.grad().data<float>()[0]; }
  float value(std::size_t i) { return parameters_[i].second.data().data<float>()[0]; }
  void zero_grad() {
    for (auto& [name, p] : parameters_) p.zero_grad();
  }
  // p -= rate * grad
  void step(float rate) {
    for (auto& [name, p] : parameters_) {
      if (!p.grad().defined()) continue;
      for (std::int64_t i = 0; i < p.numel(); ++i)
        p.data().data<float>()[i] -= rate * p.grad().data<float>()[i];
    }
  }

  bool training = true;

 private:
  std::vector<std::pair<std::string, Variable>> parameters_;
  std::vector<std::pair<std::string, Tensor>> buffers_;
};

using ModelPtr = std::shared_ptr<LinearModel>;

inline ModelPtr model_of(const std::vector<std::string>& names, std::int64_t width = 1,
                         float first = 1) {
  return std::make_shared<LinearModel>(names, width, first);
}

using Ddp = dist::DistributedDataParallel<ModelPtr>;

// The group that a body of run_local_ranks was given, as DDP wants it.
inline std::shared_ptr<dist::ProcessGroup> borrow(dist::ProcessGroup& group) {
  return {std::shared_ptr<void>(), &group};
}

inline void backward(const Variable& y) { y.backward(ones(y.shape())); }

}  // namespace lockstep::testing
