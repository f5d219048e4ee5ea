#include "lockstep/data/tensor_dataset.h"

#include <cstring>

#include "lockstep/core/check.h"

namespace lockstep::data {
namespace {

Tensor in_batch_layout(const Tensor& x, const char* what) {
  LOCKSTEP_CHECK(x.defined() && x.dim() > 0, "tensor data set: {} needs at least one axis", what);
  return x.contiguous(x.dim() == 4 ? MemoryFormat::kChannelsLast : MemoryFormat::kContiguous);
}

}  // namespace

TensorDataset::TensorDataset(const Tensor& data, const Tensor& target)
    : data_(in_batch_layout(data, "data")), target_(in_batch_layout(target, "target")) {
  LOCKSTEP_CHECK(data_.size(0) == target_.size(0),
                 "tensor data set: data has {} rows but target has {}", data_.size(0),
                 target_.size(0));
}

Example TensorDataset::get(std::int64_t index) const {
  check_index(index, size(), "tensor data set");
  return {data_.select(0, index), target_.select(0, index)};
}

Batch TensorDataset::get_batch(std::span<const std::int64_t> indices) const {
  return {
      gather_rows(data_, indices), gather_rows(target_, indices), {indices.begin(), indices.end()}};
}

Tensor gather_rows(const Tensor& x, std::span<const std::int64_t> indices) {
  Shape shape = x.shape();
  shape[0] = static_cast<std::int64_t>(indices.size());
  const bool rows = x.is_contiguous();
  const bool channels_last =
      x.dim() == 4 && (x.is_contiguous(MemoryFormat::kChannelsLast) || !rows);
  Tensor out = empty(
      shape, {.dtype = x.dtype(),
              .format = channels_last ? MemoryFormat::kChannelsLast : MemoryFormat::kContiguous});
  const bool whole_rows = channels_last ? x.is_contiguous(MemoryFormat::kChannelsLast) : rows;
  const std::size_t row_bytes =
      x.size(0) > 0 ? x.nbytes() / static_cast<std::size_t>(x.size(0)) : 0;
  const char* from = static_cast<const char*>(x.data());
  char* to = static_cast<char*>(out.data());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::int64_t index = indices[i];
    check_index(index, x.size(0), "tensor data set");
    if (!whole_rows) {
      copy_elements(out.select(0, static_cast<std::int64_t>(i)), x.select(0, index));
    } else if (row_bytes > 0) {
      std::memcpy(to + i * row_bytes, from + static_cast<std::size_t>(index) * row_bytes,
                  row_bytes);
    }
  }
  return out;
}

}  // namespace lockstep::data
