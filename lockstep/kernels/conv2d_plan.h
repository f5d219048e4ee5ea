// A convolution whose arguments have been checked, and the ways to carry it out. Internal.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

struct ConvPlan {
  std::int64_t n, groups, ic, ih, iw, oc, oh, ow, kh, kw;
  std::int64_t stride[2], padding[2], dilation[2];

  std::int64_t x_image() const { return ih * iw * ic; }
  std::int64_t y_image() const { return oh * ow * oc; }
  std::int64_t taps() const { return kh * kw * (ic / groups); }  // terms of one sum
};

// Activations are channels-last, w is contiguous, b (any may be undefined) has K elements; none is
// empty but for N, which is at least 1. Results are given, of the same layouts. The im2col way: f32
// and f64.
void conv2d_gemm_forward(const ConvPlan&, const Tensor& x, const Tensor& w, const Tensor& b,
                         const Tensor& y);
void conv2d_gemm_backward_data(const ConvPlan&, const Tensor& dy, const Tensor& w,
                               const Tensor& dx);
void conv2d_gemm_backward_weights(const ConvPlan&, const Tensor& dy, const Tensor& x,
                                  const Tensor& dw);

// The library's way (conv2d_onednn.cpp; conv2d_builtin.cpp has none). False where it has no kernel
// for the case. dw and db are f32.
bool conv2d_library_forward(const ConvPlan&, const Tensor& x, const Tensor& w, const Tensor& b,
                            bool relu, const Tensor& y);
bool conv2d_library_backward_data(const ConvPlan&, const Tensor& dy, const Tensor& w,
                                  const Tensor& dx);
bool conv2d_library_backward_weights(const ConvPlan&, const Tensor& dy, const Tensor& x,
                                     const Tensor& dw, const Tensor& db);

}  // namespace lockstep::kernels
