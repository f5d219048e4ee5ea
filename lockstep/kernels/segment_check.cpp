#include "lockstep/kernels/segment_check.h"

#include "lockstep/core/check.h"
#include "lockstep/kernels/segment_loop.h"

namespace lockstep::kernels {

void check_segment_device(std::string_view op, const Tensor& param, const Tensor& first) {
  LOCKSTEP_CHECK(param.defined(), "{}: a parameter is undefined", op);
  LOCKSTEP_CHECK(param.device() == first.device(),
                 "{}: a parameter is on {} but the first one is on {}", op, param.device().str(),
                 first.device().str());
}

void check_segment_grad(std::string_view op, const Tensor& param, const Tensor& grad) {
  LOCKSTEP_CHECK(param.defined() && grad.defined(), "{}: parameter or gradient is undefined", op);
  LOCKSTEP_CHECK(is_floating(param.dtype()), "{}: a parameter must be floating but is {}", op,
                 param.dtype());
  LOCKSTEP_CHECK(param.is_dense(), "{}: a parameter of shape {} is not dense (strides {})", op,
                 param.shape(), param.strides());
  LOCKSTEP_CHECK(grad.dtype() == param.dtype() && grad.shape() == param.shape(),
                 "{}: gradient {} {} does not fit parameter {} {}", op, grad.dtype(), grad.shape(),
                 param.dtype(), param.shape());
  LOCKSTEP_CHECK(grad.device() == param.device(), "{}: gradient is on {} but the parameter on {}",
                 op, grad.device().str(), param.device().str());
  LOCKSTEP_CHECK(grad.strides() == param.strides(),
                 "{}: gradient strides {} differ from the parameter's {}", op, grad.strides(),
                 param.strides());
}

void check_segment_state(std::string_view op, const Tensor& param, const Tensor& state,
                         std::string_view name) {
  LOCKSTEP_CHECK(state.defined(), "{}: {} is undefined", op, name);
  LOCKSTEP_CHECK(state.dtype() == state_dtype(param.dtype()) && state.shape() == param.shape() &&
                     state.strides() == param.strides(),
                 "{}: {} {} {} does not fit parameter {} {}: wanted {} of the same layout", op,
                 name, state.dtype(), state.shape(), param.dtype(), param.shape(),
                 state_dtype(param.dtype()));
  LOCKSTEP_CHECK(state.device() == param.device(), "{}: {} is on {} but the parameter on {}", op,
                 name, state.device().str(), param.device().str());
}

}  // namespace lockstep::kernels
