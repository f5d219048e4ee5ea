// What the plain and the pooled batch norm compute per channel. Internal.
#pragma once

#include <functional>

#include "lockstep/kernels/batch_norm.h"
#include "lockstep/kernels/batch_norm_simd.h"

namespace lockstep::kernels {

// What values of `dtype` are computed in; throws Error unless it is floating.
DType batch_norm_wide(DType dtype);

// The one device of x, the state and, if given, dy; throws Error where there are two.
Device batch_norm_device(const Tensor& x, const BatchNormState& state, const Tensor* dy = nullptr);

// A state checked against C channels, in the dtype of the computation, with scale = gamma
// inverse_std.
struct BatchNormValues {
  Tensor mean, inverse_std, beta, scale;
  bool relu;

  BatchNormValues(const BatchNormState& state, std::int64_t c, DType dtype);
  BatchNormChannels view() const { return {mean.data(), scale.data(), beta.data(), relu}; }
};

// dx = g scale + (x - mean) along + constant, with statistics of the `count` values that made sums.
struct BatchNormFactors {
  Tensor along, constant;

  BatchNormFactors(const BatchNormValues& values, const BatchNormSums& sums, std::int64_t count);
};

// Note [blocks of rows]: sums over rows are made per block, and those of the blocks added in order.
// The number of blocks depends on the shape only, so the number of threads changes no bit.
struct RowBlocks {
  std::int64_t total, rows, count;  // the last block may be shorter

  // `total` rows of `elements` each.
  RowBlocks(std::int64_t total, std::int64_t elements);
  std::int64_t first(std::int64_t block) const { return block * rows; }
  std::int64_t size(std::int64_t block) const {
    return block + 1 == count ? total - first(block) : rows;
  }
};

// Two f64 results per block and channel, (2, blocks, C), that f leaves in `first` and `second`.
// `scratch` holds 3 C elements of `dtype`.
using BlockFunction = std::function<void(std::int64_t row, std::int64_t rows, void* scratch,
                                         double* first, double* second)>;
Tensor per_block(const RowBlocks& blocks, std::int64_t c, DType dtype, const BlockFunction& f);

// The sums over all blocks.
BatchNormSums add_blocks(const Tensor& per_block, DType dtype);

}  // namespace lockstep::kernels
