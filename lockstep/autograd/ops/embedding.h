// Rows of a table by index. Order of additions and errors: kernels/embedding.h.
#pragma once

#include <optional>

#include "lockstep/autograd/variable.h"

namespace lockstep {

// weight (V, D), indices of any shape (i64, i32, u8): result (indices' shape, D). The row
// padding_idx (negative counts from the back) is read as any other but gets no gradient. The
// gradient is dense.
Variable embedding(const Variable& weight, const Tensor& indices,
                   std::optional<std::int64_t> padding_idx = {});

}  // namespace lockstep
