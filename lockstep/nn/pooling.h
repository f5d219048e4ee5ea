// Pooling of images (N, C, H, W). Formulas and output sizes: lockstep/kernels/<op>.h.
#pragma once

#include <optional>

#include "lockstep/nn/module.h"
#include "lockstep/nn/size2.h"

namespace lockstep::nn {

class MaxPool2dOptions {
 public:
  MaxPool2dOptions(Size2 kernel_size) : kernel_size_(kernel_size) {}  // NOLINT
  MaxPool2dOptions(std::int64_t size) : kernel_size_(size) {}         // NOLINT

  MaxPool2dOptions& stride(Size2 stride) { return stride_ = stride, *this; }
  MaxPool2dOptions& padding(Size2 padding) { return padding_ = padding, *this; }
  MaxPool2dOptions& dilation(Size2 dilation) { return dilation_ = dilation, *this; }
  MaxPool2dOptions& ceil_mode(bool on) { return ceil_mode_ = on, *this; }

  Size2 kernel_size() const { return kernel_size_; }
  Size2 stride() const { return stride_.value_or(kernel_size_); }
  Size2 padding() const { return padding_; }
  Size2 dilation() const { return dilation_; }
  bool ceil_mode() const { return ceil_mode_; }

 private:
  Size2 kernel_size_;
  std::optional<Size2> stride_;
  Size2 padding_ = 0, dilation_ = 1;
  bool ceil_mode_ = false;
};

class MaxPool2dImpl : public Module {
 public:
  explicit MaxPool2dImpl(const MaxPool2dOptions& given) : options(given) {}
  Variable forward(const Variable& x);

  MaxPool2dOptions options;
};
LOCKSTEP_MODULE(MaxPool2d);

class AvgPool2dOptions {
 public:
  AvgPool2dOptions(Size2 kernel_size) : kernel_size_(kernel_size) {}  // NOLINT
  AvgPool2dOptions(std::int64_t size) : kernel_size_(size) {}         // NOLINT

  AvgPool2dOptions& stride(Size2 stride) { return stride_ = stride, *this; }
  AvgPool2dOptions& padding(Size2 padding) { return padding_ = padding, *this; }
  AvgPool2dOptions& ceil_mode(bool on) { return ceil_mode_ = on, *this; }
  // Whether padding counts in the average.
  AvgPool2dOptions& count_include_pad(bool on) { return count_include_pad_ = on, *this; }

  Size2 kernel_size() const { return kernel_size_; }
  Size2 stride() const { return stride_.value_or(kernel_size_); }
  Size2 padding() const { return padding_; }
  bool ceil_mode() const { return ceil_mode_; }
  bool count_include_pad() const { return count_include_pad_; }

 private:
  Size2 kernel_size_;
  std::optional<Size2> stride_;
  Size2 padding_ = 0;
  bool ceil_mode_ = false;
  bool count_include_pad_ = true;
};

class AvgPool2dImpl : public Module {
 public:
  explicit AvgPool2dImpl(const AvgPool2dOptions& given) : options(given) {}
  Variable forward(const Variable& x);

  AvgPool2dOptions options;
};
LOCKSTEP_MODULE(AvgPool2d);

// To an image of the given size, whatever the input's.
class AdaptiveAvgPool2dImpl : public Module {
 public:
  explicit AdaptiveAvgPool2dImpl(Size2 output_size) : output_size(output_size) {}
  Variable forward(const Variable& x);

  Size2 output_size;
};
LOCKSTEP_MODULE(AdaptiveAvgPool2d);

}  // namespace lockstep::nn
