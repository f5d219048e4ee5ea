// Batch normalisation over all axes but the channels'.
#pragma once

#include <optional>

#include "lockstep/nn/module.h"
#include "lockstep/nn/relu_fusion.h"

namespace lockstep::nn {

class BatchNormOptions {
 public:
  BatchNormOptions(std::int64_t num_features)  // NOLINT(google-explicit-constructor)
      : num_features_(num_features) {}

  BatchNormOptions& eps(double eps) { return eps_ = eps, *this; }
  // Weight of the new batch in the running statistics; nullopt: their plain average over batches.
  BatchNormOptions& momentum(std::optional<double> m) { return momentum_ = m, *this; }
  BatchNormOptions& affine(bool on) { return affine_ = on, *this; }
  BatchNormOptions& track_running_stats(bool on) { return track_running_stats_ = on, *this; }

  std::int64_t num_features() const { return num_features_; }
  double eps() const { return eps_; }
  std::optional<double> momentum() const { return momentum_; }
  bool affine() const { return affine_; }
  bool track_running_stats() const { return track_running_stats_; }

 private:
  std::int64_t num_features_;
  double eps_ = 1e-5;
  std::optional<double> momentum_ = 0.1;
  bool affine_ = true;
  bool track_running_stats_ = true;
};
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;

// y = (x - mean) / sqrt(var + eps) * weight + bias per channel. Training: mean and biased variance
// of the batch, and running = (1 - momentum) running + momentum batch, with the unbiased variance.
// Evaluation: the running ones. Without track_running_stats: always the batch's.
// Parameters weight = 1 and bias = 0 (if affine); buffers running_mean = 0, running_var = 1,
// num_batches_tracked = 0 (i64). Errors: a shape that does not fit, one value per channel in
// training.
class BatchNormImpl : public Module, public ReluFusion {
 public:
  void reset_parameters();
  void reset_running_stats();
  Variable forward(const Variable& x) { return normalize(x, false); }
  Variable forward_relu(const Variable& x) override { return normalize(x, true); }

  BatchNormOptions options;
  Variable weight, bias;
  Variable running_mean, running_var, num_batches_tracked;

 protected:
  BatchNormImpl(const BatchNormOptions& options, const char* name);
  virtual void check_input(const Variable& x) const = 0;
  // Calls op(running mean, running var, training, momentum) with what the mode asks for.
  template <class Op>
  Variable with_statistics(const Op& op);

 private:
  Variable normalize(const Variable& x, bool relu);
};

// x (N, C) or (N, C, L).
class BatchNorm1dImpl : public BatchNormImpl {
 public:
  explicit BatchNorm1dImpl(const BatchNormOptions& options)
      : BatchNormImpl(options, "BatchNorm1d") {}

 protected:
  void check_input(const Variable& x) const override;
};
LOCKSTEP_MODULE(BatchNorm1d);

// x (N, C, H, W).
class BatchNorm2dImpl : public BatchNormImpl {
 public:
  explicit BatchNorm2dImpl(const BatchNormOptions& options)
      : BatchNormImpl(options, "BatchNorm2d") {}

  // max_pool2d(forward_relu(x), kernel, format) without the large tensor between; same bits.
  Variable forward_relu_max_pool(const Variable& x, std::int64_t kernel,
                                 MemoryFormat format = MemoryFormat::kChannelsLast);

 protected:
  void check_input(const Variable& x) const override;
};
LOCKSTEP_MODULE(BatchNorm2d);

}  // namespace lockstep::nn
