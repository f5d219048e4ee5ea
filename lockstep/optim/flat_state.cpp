#include "lockstep/optim/flat_state.h"

#include <algorithm>

#include "lockstep/core/check.h"

namespace lockstep::optim {

const Tensor& FlatState::view(const std::vector<Variable>& params, std::size_t i) {
  if (views_.size() != params.size()) allocate(params);
  return views_[i];
}

void FlatState::allocate(const std::vector<Variable>& params) {
  std::int64_t f32 = 0, f64 = 0;
  const Device device = params.empty() ? kCpu : params[0].data().device();
  for (const Variable& p : params)
    LOCKSTEP_CHECK(p.data().device() == device,
                   "optimizer: expected all parameters of a group on one device but got some on {} "
                   "and some on {}",
                   device.str(), p.data().device().str());
  for (const Variable& p : params) (p.dtype() == kF64 ? f64 : f32) += p.numel();
  flat_f32_ = zeros({f32}, {kF32, device});
  flat_f64_ = zeros({f64}, {kF64, device});
  f32 = f64 = 0;
  for (const Variable& p : params) {
    const bool wide = p.dtype() == kF64;
    std::int64_t& offset = wide ? f64 : f32;
    views_.push_back(
        (wide ? flat_f64_ : flat_f32_).as_strided(p.shape(), p.data().strides(), offset));
    offset += p.numel();
  }
  started_.assign(params.size(), false);
}

void FlatState::load(const std::vector<Variable>& params, const std::vector<Tensor>& saved) {
  const bool any =
      std::any_of(saved.begin(), saved.end(), [](const Tensor& t) { return t.defined(); });
  if (!any && views_.empty()) return;
  if (views_.size() != params.size()) allocate(params);
  for (std::size_t i = 0; i < params.size(); ++i) {
    started_[i] = saved[i].defined();
    if (saved[i].defined())
      copy_elements(views_[i], saved[i]);
    else
      zero_(views_[i]);
  }
}

std::vector<Tensor> find_saved(const StateDict& dict, const std::vector<Variable>& params,
                               const std::function<std::string(std::size_t)>& key) {
  std::vector<Tensor> saved(params.size());
  for (std::size_t i = 0; i < params.size(); ++i) {
    const Tensor* t = find(dict, key(i));
    if (t == nullptr) continue;
    const DType wanted = params[i].dtype() == kF64 ? kF64 : kF32;
    LOCKSTEP_CHECK(t->dtype() == wanted && t->shape() == params[i].shape(),
                   "load_state_dict: '{}' is {} {}, wanted {} {}", key(i), t->dtype(), t->shape(),
                   wanted, params[i].shape());
    saved[i] = *t;
  }
  return saved;
}

}  // namespace lockstep::optim
