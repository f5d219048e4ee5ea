// Labelled images held as bytes and scaled to [0, 1] batch by batch.
#pragma once

#include <string>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

enum class Split { kTrain, kTest };

class ImageDataset : public Dataset {
 public:
  // images (N,C,H,W) u8, labels (N,) i64 in 0..classes-1. Errors: other shapes or dtypes, different
  // N, N = 0, a label outside (names its position); `name` starts each message.
  ImageDataset(const Tensor& images, const Tensor& labels, std::int64_t classes, std::string name);

  std::int64_t size() const override { return images_.size(0); }
  // data (C,H,W) f32, pixel / 255; target a scalar i64.
  Example get(std::int64_t index) const override;
  // data (N,C,H,W) f32 channels-last, target (N,) i64.
  Batch get_batch(std::span<const std::int64_t> indices) const override;

  const Tensor& images() const { return images_; }
  const Tensor& labels() const { return labels_; }
  std::int64_t classes() const { return classes_; }

 private:
  Tensor images_;  // channels-last
  Tensor labels_;
  std::int64_t classes_;
  std::string name_;
};

}  // namespace lockstep::data
