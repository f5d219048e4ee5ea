// The three convolutions, on memory that has been checked.
#pragma once

#include "vgpu/cudnn/descriptors.h"

namespace vgpu {

// All that a call names, by value. With groups g: x (N,C,H,W), w (K,C/g,R,S), y (N,K,P,Q);
// y[n,k,p,q] = sum over c,r,s of x[n, c, p*stride - pad + r*dilation, …] * w[k,c,r,s].
struct Convolution {
  cudnnTensorStruct x, w, y;
  cudnnConvolutionStruct how;
  // Sums over images run backwards: an algorithm that promises no order.
  bool reversed = false;

  std::int64_t rows() const;  // P
  std::int64_t cols() const;  // Q
};

// result = alpha * (…) + beta * result; f16, bf16 and f32 in f32, f64 in f64. `x`, `w`, `y` are the
// memory of the descriptors of that name, or of their gradients.
void convolve_forward(const Convolution& c, double alpha, const void* x, const void* w, double beta,
                      void* y);
void convolve_backward_data(const Convolution& c, double alpha, const void* w, const void* dy,
                            double beta, void* dx);
void convolve_backward_filter(const Convolution& c, double alpha, const void* x, const void* dy,
                              double beta, void* dw);
// db[k] = alpha * sum of dy over n, p, q + beta * db[k]
void sum_channels(const cudnnTensorStruct& dy_desc, double alpha, const void* dy, double beta,
                  const cudnnTensorStruct& db_desc, void* db);

}  // namespace vgpu
