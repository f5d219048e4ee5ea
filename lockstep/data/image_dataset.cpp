#include "lockstep/data/image_dataset.h"

#include <array>

#include "lockstep/core/check.h"
#include "lockstep/data/tensor_dataset.h"

namespace lockstep::data {
namespace {

constexpr std::array<float, 256> kScaled = [] {
  std::array<float, 256> scaled{};
  for (int i = 0; i < 256; ++i)
    scaled[static_cast<std::size_t>(i)] = static_cast<float>(i) / 255.0f;
  return scaled;
}();

}  // namespace

ImageDataset::ImageDataset(const Tensor& images, const Tensor& labels, std::int64_t classes,
                           std::string name)
    : classes_(classes), name_(std::move(name)) {
  LOCKSTEP_CHECK(images.defined() && images.dim() == 4 && images.dtype() == kU8,
                 "{}: images must be (N,C,H,W) of u8, got {} of {}", name_, images.shape(),
                 images.dtype());
  LOCKSTEP_CHECK(labels.defined() && labels.dim() == 1 && labels.dtype() == kI64,
                 "{}: labels must be (N,) of i64, got {} of {}", name_, labels.shape(),
                 labels.dtype());
  LOCKSTEP_CHECK(images.size(0) == labels.size(0), "{}: {} images but {} labels", name_,
                 images.size(0), labels.size(0));
  LOCKSTEP_CHECK(images.size(0) > 0, "{}: the data set is empty", name_);
  images_ = images.contiguous(MemoryFormat::kChannelsLast);
  labels_ = labels.contiguous();
  const auto* label = labels_.data<std::int64_t>();
  for (std::int64_t i = 0; i < labels_.numel(); ++i)
    LOCKSTEP_CHECK(label[i] >= 0 && label[i] < classes, "{}: label {} of image {} is outside 0..{}",
                   name_, label[i], i, classes - 1);
}

Example ImageDataset::get(std::int64_t index) const {
  Batch batch = get_batch({&index, 1});
  return {batch.data.select(0, 0), batch.target.select(0, 0)};
}

Batch ImageDataset::get_batch(std::span<const std::int64_t> indices) const {
  Shape shape = images_.shape();
  shape[0] = static_cast<std::int64_t>(indices.size());
  Tensor data = empty(shape, {.dtype = kF32, .format = MemoryFormat::kChannelsLast});
  const std::int64_t pixels = images_.numel() / images_.size(0);
  const auto* from = images_.data<std::uint8_t>();
  auto* to = data.data<float>();
  for (const std::int64_t index : indices) {
    check_index(index, size(), name_.c_str());
    const std::uint8_t* image = from + index * pixels;
    for (std::int64_t i = 0; i < pixels; ++i) to[i] = kScaled[image[i]];
    to += pixels;
  }
  return {std::move(data), gather_rows(labels_, indices), {indices.begin(), indices.end()}};
}

}  // namespace lockstep::data
