// Embedding in the graph.
#include "lockstep/autograd/ops/embedding.h"

#include "lockstep/autograd/record.h"
#include "lockstep/core/check.h"
#include "lockstep/kernels/embedding.h"

namespace lockstep {

Variable embedding(const Variable& weight, const Tensor& indices,
                   std::optional<std::int64_t> padding_idx) {
  Tensor y = kernels::embedding_forward(weight.data(), indices);
  const std::int64_t rows = weight.size(0);
  std::int64_t padding = -1;
  if (padding_idx) {
    LOCKSTEP_CHECK(*padding_idx >= -rows && *padding_idx < rows,
                   "embedding: padding_idx {} is outside the table's {} rows", *padding_idx, rows);
    padding = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
  }
  return record("embedding", std::move(y), inputs(weight), [&](const Tensor&) {
    return [indices = SavedTensor(indices), rows, padding](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::embedding_backward(dy, indices.get(), rows, padding); });
    };
  });
}

}  // namespace lockstep
