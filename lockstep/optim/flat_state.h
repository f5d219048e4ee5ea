// One kind of optimizer state (a velocity, a second moment, slow weights) of one parameter group,
// on flat storage.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/autograd/variable.h"
#include "lockstep/optim/state_dict.h"

namespace lockstep::optim {

// All f32, f16 and bf16 parameters of the group share one flat f32 tensor, all f64 ones one flat
// f64 tensor, without gaps, in the order of the parameters. Each parameter sees its part as a view
// of its own shape and strides. Allocated, with zeros, on first use, on the parameters' device.
class FlatState {
 public:
  // The view of parameter i of `params`; the list must be the same at every call.
  const Tensor& view(const std::vector<Variable>& params, std::size_t i);

  // Whether parameter i has such state yet; its part is zero before.
  bool started(std::size_t i) const { return i < started_.size() && started_[i]; }
  void set_started(std::size_t i) { started_[i] = true; }

  // A copy of parameter i's state. For started parameters only.
  Tensor saved(std::size_t i) const { return views_[i].clone(); }
  // Copies saved[i] in, undefined for state that has not started. Uses the storage it has.
  void load(const std::vector<Variable>& params, const std::vector<Tensor>& saved);

  // The flat tensors; undefined where there is no such parameter or nothing is allocated yet.
  const Tensor& flat_f32() const { return flat_f32_; }
  const Tensor& flat_f64() const { return flat_f64_; }

 private:
  void allocate(const std::vector<Variable>& params);

  Tensor flat_f32_, flat_f64_;
  std::vector<Tensor> views_;
  std::vector<bool> started_;
};

// The tensors of a saved state for each parameter, undefined where there is none under key(i).
// Throws Error naming the key where a dtype (f64 for f64 parameters, else f32) or shape doesn't
// fit.
std::vector<Tensor> find_saved(const StateDict& dict, const std::vector<Variable>& params,
                               const std::function<std::string(std::size_t)>& key);

}  // namespace lockstep::optim
