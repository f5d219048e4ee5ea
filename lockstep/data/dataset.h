// The data set interface: examples by index, gathered into batches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/core/tensor.h"

namespace lockstep::data {

// One example: data (C,H,W) or any shape, target of any shape (often a scalar i64 class).
struct Example {
  Tensor data;
  Tensor target;
};

// Examples stacked along a new first axis: data (N,C,H,W), channels-last for images; target (N,…).
struct Batch {
  Tensor data;
  Tensor target;
  std::vector<std::int64_t> indices;  // the examples' indices in the data set

  std::int64_t size() const { return static_cast<std::int64_t>(indices.size()); }
};

// Map-style. The loader's workers call get() and get_batch() from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;
  virtual Example get(std::int64_t index) const = 0;
  // Stacks get() of each index; override where gathering at once is faster.
  virtual Batch get_batch(std::span<const std::int64_t> indices) const;
};

// The tensors along a new first axis; 4-D results are channels-last. All need one shape and dtype.
Tensor stack_examples(std::span<const Tensor> tensors);

// Throws Error unless 0 <= index < size; `what` names the data set.
void check_index(std::int64_t index, std::int64_t size, const char* what);

}  // namespace lockstep::data
