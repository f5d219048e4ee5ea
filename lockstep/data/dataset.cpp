#include "lockstep/data/dataset.h"

#include "lockstep/core/check.h"

namespace lockstep::data {

Batch Dataset::get_batch(std::span<const std::int64_t> indices) const {
  std::vector<Tensor> data;
  std::vector<Tensor> targets;
  for (const std::int64_t index : indices) {
    Example example = get(index);
    data.push_back(std::move(example.data));
    targets.push_back(std::move(example.target));
  }
  return {stack_examples(data), stack_examples(targets), {indices.begin(), indices.end()}};
}

Tensor stack_examples(std::span<const Tensor> tensors) {
  LOCKSTEP_CHECK(!tensors.empty(), "batch: at least one example is needed");
  const Tensor& first = tensors.front();
  LOCKSTEP_CHECK(first.defined(), "batch: example 0 has an undefined tensor");
  const Shape shape = first.shape().inserted(0, static_cast<std::int64_t>(tensors.size()));
  const MemoryFormat format =
      shape.rank() == 4 ? MemoryFormat::kChannelsLast : MemoryFormat::kContiguous;
  Tensor batch = empty(shape, {.dtype = first.dtype(), .format = format});
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& example = tensors[i];
    LOCKSTEP_CHECK(example.defined(), "batch: example {} has an undefined tensor", i);
    LOCKSTEP_CHECK(example.shape() == first.shape() && example.dtype() == first.dtype(),
                   "batch: example {} is {} of {} but example 0 is {} of {}", i, example.shape(),
                   example.dtype(), first.shape(), first.dtype());
    copy_elements(batch.select(0, static_cast<std::int64_t>(i)), example);
  }
  return batch;
}

void check_index(std::int64_t index, std::int64_t size, const char* what) {
  LOCKSTEP_CHECK(index >= 0 && index < size, "{}: index {} is outside 0..{}", what, index,
                 size - 1);
}

}  // namespace lockstep::data
