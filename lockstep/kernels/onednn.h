// All that Lockstep asks of oneDNN, without any of its types: onednn.cpp is the one file that knows
// the library, and works with its interfaces 2.6 and 3.x. Internal: not for embedders.
//
// Every thread has its own engine, stream and cache of compiled primitives (least recently used go
// first); they end with the thread. Scratch memory comes from Lockstep's allocator. `threads` is
// how many the library may use; inside a parallel region it is 1 whatever is asked.
#pragma once

#include <cstdint>

#include "lockstep/core/tensor.h"

namespace lockstep::kernels::onednn {

// C (m, n) = op(A) op(B), or += . Leading dimensions are those of the matrices as stored, by rows.
struct Gemm {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
  const void* a;
  std::int64_t lda;
  const void* b;
  std::int64_t ldb;
  void* c;
  std::int64_t ldc;
  bool accumulate;
  int threads;
};

void sgemm(const Gemm& call);
// False where the processor has no kernel for it.
bool matmul_bf16(const Gemm& call);

// x (N, IC, IH, IW) and y (N, OC, OH, OW) channels-last, w (OC, IC / groups, KH, KW) contiguous,
// one dtype (f32 or bf16), as are bias (OC) and dx; dw and db are f32.
struct Conv {
  DType dtype;
  bool bias, relu;
  std::int64_t n, groups, ic, ih, iw, oc, oh, ow, kh, kw;
  std::int64_t stride[2], padding[2], dilation[2];
  int threads;
};

enum class ConvDirection : std::int64_t { kForward, kBackwardData, kBackwardWeights };

// Whether the processor has a kernel for this; the functions below need one.
bool supports(const Conv&, ConvDirection);
// The weights in the order that this convolution wants them, as an opaque block; w itself where
// that is its own order. For a convolution that differs in n only, check same_weights.
Tensor pack_weights(const Conv&, ConvDirection, const Tensor& w);
bool same_weights(const Conv&, const Conv&, ConvDirection);

void conv_forward(const Conv&, const void* x, const Tensor& packed, const void* bias, void* y);
void conv_backward_data(const Conv&, const void* dy, const Tensor& packed, void* dx);
// dw = and, where the convolution has a bias, db = .
void conv_backward_weights(const Conv&, const void* x, const void* dy, float* dw, float* db);

// Drops the calling thread's cache.
void release_thread_cache();
// Primitives in the calling thread's cache; never more than kCacheCapacity.
inline constexpr std::size_t kCacheCapacity = 256;
std::size_t cached_primitives();

}  // namespace lockstep::kernels::onednn
