// The build without oneDNN has no other way than im2col.
#include "lockstep/kernels/conv2d_plan.h"

namespace lockstep::kernels {

bool conv2d_library_forward(const ConvPlan&, const Tensor&, const Tensor&, const Tensor&, bool,
                            const Tensor&) {
  return false;
}
bool conv2d_library_backward_data(const ConvPlan&, const Tensor&, const Tensor&, const Tensor&) {
  return false;
}
bool conv2d_library_backward_weights(const ConvPlan&, const Tensor&, const Tensor&, const Tensor&,
                                     const Tensor&) {
  return false;
}

}  // namespace lockstep::kernels
