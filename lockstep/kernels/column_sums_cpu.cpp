#include <algorithm>
#include <vector>

#include "lockstep/core/config.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/column_sums.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/promote.h"
#include "lockstep/kernels/reduction_cuda.h"

namespace lockstep::kernels {
namespace {

constexpr std::int64_t kRows = 64;
constexpr std::int64_t kColumns = 512;  // their sums stay in the L1 cache

template <class T>
void sum_columns(const T* x, std::int64_t rows, std::int64_t c, std::int64_t first,
                 std::int64_t last, T* out) {
  using A = Accumulator<T>;
  A part[kColumns];
  double total[kColumns];
  const std::int64_t n = last - first;
  std::fill_n(total, n, 0.0);
  for (std::int64_t r0 = 0; r0 < rows; r0 += kRows) {
    std::fill_n(part, n, A(0));
    const std::int64_t r1 = std::min(rows, r0 + kRows);
    for (std::int64_t r = r0; r < r1; ++r) {
      const T* row = x + r * c + first;
      for (std::int64_t j = 0; j < n; ++j) part[j] += static_cast<A>(row[j]);
    }
    for (std::int64_t j = 0; j < n; ++j) total[j] += part[j];
  }
  for (std::int64_t j = 0; j < n; ++j) out[first + j] = static_cast<T>(static_cast<A>(total[j]));
}

}  // namespace

void column_sums(const Tensor& x, std::int64_t rows, const Tensor& sum) {
  const std::int64_t c = sum.numel();
  sum.bump_version();
  if constexpr (kHasCuda)
    if (common_device("column_sums", {&x, &sum}).is_cuda()) {
      if (c == 0 || rows == 0) return zero_(sum);
      return cuda::reduce_into(x.as_strided({rows, c}, {c, 1}, x.offset()), 1u,
                               compute_dtype(x.dtype()), ReductionOp::kSum, sum.view({1, c}), 1);
    }
  visit_floating(sum.dtype(), "column_sums", [&]<class T>() {
    const std::int64_t blocks = (c + kColumns - 1) / kColumns;
    parallel_for(blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b)
        sum_columns(x.data<T>(), rows, c, b * kColumns, std::min(c, (b + 1) * kColumns),
                    sum.data<T>());
    });
  });
}

}  // namespace lockstep::kernels
