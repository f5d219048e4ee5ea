#include <algorithm>

#include "lockstep/core/threads.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/gemm.h"
#include "lockstep/kernels/onednn.h"

namespace lockstep::kernels {
namespace {

// Row or column major with a leading dimension, as BLAS wants it.
struct BlasMatrix {
  bool transposed;
  std::int64_t leading;
};

bool as_blas(const Tensor& x, BlasMatrix* out) {
  const std::int64_t rows = x.shape()[0], cols = x.shape()[1];
  const std::int64_t row = x.strides()[0], col = x.strides()[1];
  if (cols == 1 || col == 1) {
    *out = {false, rows == 1 ? cols : row};
    return out->leading >= cols;
  }
  if (rows == 1 || row == 1) {
    *out = {true, cols == 1 ? rows : col};
    return out->leading >= rows;
  }
  return false;
}

// Left to its own, the library divides the work, and with it some sums, by the number of threads.
// In deterministic mode it gets pieces of C of a fixed size, one thread each.
template <class Call>
void in_fixed_pieces(std::int64_t m, std::int64_t n, const Call& call) {
  constexpr std::int64_t kPiece = 256;
  const bool by_rows = m >= n;
  const std::int64_t extent = by_rows ? m : n;
  const std::int64_t pieces = std::max<std::int64_t>(extent / kPiece, 1);
  parallel_for(pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i * kPiece;
      const std::int64_t last = i + 1 == pieces ? extent : first + kPiece;
      by_rows ? call(first, last, std::int64_t{0}, n) : call(std::int64_t{0}, m, first, last);
    }
  });
}

}  // namespace

bool gemm_f32_library(const Tensor& a, const Tensor& b, const Tensor& c, bool accumulate) {
  BlasMatrix ma, mb, mc;
  if (!as_blas(a, &ma) || !as_blas(b, &mb) || !as_blas(c, &mc) || mc.transposed) return false;
  const auto piece = [&](std::int64_t m0, std::int64_t m1, std::int64_t n0, std::int64_t n1) {
    onednn::sgemm({.transpose_a = ma.transposed,
                   .transpose_b = mb.transposed,
                   .m = m1 - m0,
                   .n = n1 - n0,
                   .k = a.shape()[1],
                   .a = a.data<float>() + m0 * a.strides()[0],
                   .lda = ma.leading,
                   .b = b.data<float>() + n0 * b.strides()[1],
                   .ldb = mb.leading,
                   .c = c.data<float>() + m0 * c.strides()[0] + n0,
                   .ldc = mc.leading,
                   .accumulate = accumulate,
                   .threads = deterministic() ? 1 : num_threads()});
  };
  if (deterministic())
    in_fixed_pieces(a.shape()[0], b.shape()[1], piece);
  else
    piece(0, a.shape()[0], 0, b.shape()[1]);
  return true;
}

bool gemm_bf16_library(const Tensor& a, const Tensor& b, const Tensor& c, bool accumulate) {
  require_cpu("matmul", {&a, &b, &c});
  BlasMatrix ma, mb, mc;
  if (!as_blas(a, &ma) || !as_blas(b, &mb) || !as_blas(c, &mc) || mc.transposed) return false;
  return onednn::matmul_bf16({.transpose_a = ma.transposed,
                              .transpose_b = mb.transposed,
                              .m = a.shape()[0],
                              .n = b.shape()[1],
                              .k = a.shape()[1],
                              .a = a.data(),
                              .lda = ma.leading,
                              .b = b.data(),
                              .ldb = mb.leading,
                              .c = c.data(),
                              .ldc = mc.leading,
                              .accumulate = accumulate,
                              .threads = deterministic() ? 1 : num_threads()});
}

}  // namespace lockstep::kernels
