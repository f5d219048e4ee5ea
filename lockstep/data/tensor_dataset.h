// A data set over tensors in memory: example i is row i of each.
#pragma once

#include "lockstep/data/dataset.h"

namespace lockstep::data {

class TensorDataset : public Dataset {
 public:
  // data (N,…), target (N,…) of any dtypes. Shares their memory, except that 4-D data that is not
  // channels-last is copied into that layout once. Errors: undefined, scalar, different N.
  TensorDataset(const Tensor& data, const Tensor& target);

  std::int64_t size() const override { return data_.size(0); }
  Example get(std::int64_t index) const override;
  Batch get_batch(std::span<const std::int64_t> indices) const override;

  const Tensor& data() const { return data_; }
  const Tensor& target() const { return target_; }

 private:
  Tensor data_;
  Tensor target_;
};

// Rows of x (N,…) in the order of `indices`, in x's layout. Errors: index outside 0..N-1.
Tensor gather_rows(const Tensor& x, std::span<const std::int64_t> indices);

}  // namespace lockstep::data
