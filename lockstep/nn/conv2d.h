// Two-dimensional convolution (cross-correlation) of images (N, C, H, W).
#pragma once

#include "lockstep/nn/module.h"
#include "lockstep/nn/relu_fusion.h"
#include "lockstep/nn/size2.h"

namespace lockstep::nn {

class Conv2dOptions {
 public:
  Conv2dOptions(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}

  Conv2dOptions& stride(Size2 stride) { return stride_ = stride, *this; }
  Conv2dOptions& padding(Size2 padding) { return padding_ = padding, *this; }  // with zeros
  Conv2dOptions& dilation(Size2 dilation) { return dilation_ = dilation, *this; }
  Conv2dOptions& groups(std::int64_t groups) { return groups_ = groups, *this; }
  Conv2dOptions& bias(bool on) { return bias_ = on, *this; }

  std::int64_t in_channels() const { return in_channels_; }
  std::int64_t out_channels() const { return out_channels_; }
  Size2 kernel_size() const { return kernel_size_; }
  Size2 stride() const { return stride_; }
  Size2 padding() const { return padding_; }
  Size2 dilation() const { return dilation_; }
  std::int64_t groups() const { return groups_; }
  bool bias() const { return bias_; }

 private:
  std::int64_t in_channels_, out_channels_;
  Size2 kernel_size_;
  Size2 stride_ = 1, padding_ = 0, dilation_ = 1;
  std::int64_t groups_ = 1;
  bool bias_ = true;
};

// Parameters: weight (out, in / groups, kh, kw) and bias (out), drawn as Linear's with
// in / groups * kh * kw inputs. Errors: channels that groups does not divide, kernel, stride or
// dilation below 1, negative padding.
class Conv2dImpl : public Module, public ReluFusion {
 public:
  Conv2dImpl(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel_size)
      : Conv2dImpl(Conv2dOptions(in_channels, out_channels, kernel_size)) {}
  explicit Conv2dImpl(const Conv2dOptions& options);

  void reset_parameters();
  Variable forward(const Variable& x);
  Variable forward_relu(const Variable& x) override;

  Conv2dOptions options;
  Variable weight;
  Variable bias;  // undefined without one
};
LOCKSTEP_MODULE(Conv2d);

}  // namespace lockstep::nn
