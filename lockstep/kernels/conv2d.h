// 2-D convolution (cross-correlation) of images.
//
//   y[n,k,p,q] = b[k] + sum over c,r,s of w[k,c,r,s] *
//                x[n, g(k) C/G + c, p stride - padding + r dilation, q stride - padding + s
//                dilation]
//
// x (N,C,H,W), w (K,C/G,R,S), b (K) or undefined, y (N,K,P,Q), with G groups, outside of x zeros,
// P = floor((H + 2 padding - dilation (R-1) - 1) / stride) + 1, Q likewise.
//
// All dtypes f32, f64, f16, bf16, one for all tensors of a call; sums in f32 (f64 for f64), results
// rounded once. Results are channels-last, whatever the layouts given; an x or dy that isn't gets
// copied (image_layout.h counts that). Weights may have any layout, gradients of weights are
// contiguous. All results are new tensors (=). In deterministic mode the bits depend neither on the
// number of threads nor on where an image stands in its batch's piece.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// How it is computed. kAuto takes the fastest that the build and the processor have for the case.
enum class ConvAlgorithm {
  kAuto,
  kDirect,  // oneDNN's, or cuDNN's; where it has none for the case, kGemm
  kGemm,    // our own: im2col and a matrix product; on a CUDA device an implicit GEMM
};

struct Conv2dOptions {
  std::int64_t stride[2] = {1, 1};
  std::int64_t padding[2] = {0, 0};
  std::int64_t dilation[2] = {1, 1};
  std::int64_t groups = 1;
  ConvAlgorithm algorithm = ConvAlgorithm::kAuto;
};

// The shape of y. Throws Error naming both shapes where x, w and the options don't fit.
Shape conv2d_shape(const Shape& x, const Shape& w, const Conv2dOptions& options);

// y, or max(0, y) with `relu`.
Tensor conv2d_forward(const Tensor& x, const Tensor& w, const Tensor& b,
                      const Conv2dOptions& options = {}, bool relu = false);

// dx (N,C,H,W) of shape `x`.
Tensor conv2d_backward_data(const Tensor& dy, const Tensor& w, const Shape& x,
                            const Conv2dOptions& options = {});

struct Conv2dWeightGradients {
  Tensor dw;  // (K,C/G,R,S) of shape `w`
  Tensor db;  // (K), undefined unless asked for
};

Conv2dWeightGradients conv2d_backward_weights(const Tensor& dy, const Tensor& x, const Shape& w,
                                              bool with_bias, const Conv2dOptions& options = {});

}  // namespace lockstep::kernels
