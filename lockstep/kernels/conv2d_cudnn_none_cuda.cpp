// The build without cuDNN.
#include "lockstep/kernels/conv2d_cudnn.h"

namespace lockstep::kernels::cuda {

bool conv2d_cudnn_forward(const ConvPlan&, const Tensor&, const Tensor&, const Tensor&) {
  return false;
}
bool conv2d_cudnn_backward_data(const ConvPlan&, const Tensor&, const Tensor&, const Tensor&) {
  return false;
}
bool conv2d_cudnn_backward_weights(const ConvPlan&, const Tensor&, const Tensor&, const Tensor&) {
  return false;
}

}  // namespace lockstep::kernels::cuda
