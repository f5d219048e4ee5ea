// Losses as modules, with PyTorch's options and defaults. Formulas: lockstep/kernels/<loss>.h.
#pragma once

#include <utility>

#include "lockstep/autograd/ops/bce_with_logits.h"
#include "lockstep/kernels/loss_options.h"
#include "lockstep/nn/module.h"

namespace lockstep::nn {

class CrossEntropyLossOptions {
 public:
  CrossEntropyLossOptions& weight(Tensor w) { return values_.weight = std::move(w), *this; }
  CrossEntropyLossOptions& ignore_index(std::int64_t i) { return values_.ignore_index = i, *this; }
  CrossEntropyLossOptions& reduction(Reduction r) { return values_.reduction = r, *this; }
  CrossEntropyLossOptions& label_smoothing(double s) { return values_.label_smoothing = s, *this; }
  const ClassLossOptions& values() const { return values_; }

 private:
  ClassLossOptions values_;
};

// logits (N, C, …) or (C) against class indices (N, …) or ().
class CrossEntropyLossImpl : public Module {
 public:
  explicit CrossEntropyLossImpl(const CrossEntropyLossOptions& options = {});
  Variable forward(const Variable& logits, const Variable& target);

  CrossEntropyLossOptions options;
};
LOCKSTEP_MODULE(CrossEntropyLoss);

class NLLLossOptions {
 public:
  NLLLossOptions& weight(Tensor w) { return values_.weight = std::move(w), *this; }
  NLLLossOptions& ignore_index(std::int64_t i) { return values_.ignore_index = i, *this; }
  NLLLossOptions& reduction(Reduction r) { return values_.reduction = r, *this; }
  const ClassLossOptions& values() const { return values_; }

 private:
  ClassLossOptions values_;
};

// log-probabilities (N, C, …) or (C) against class indices.
class NLLLossImpl : public Module {
 public:
  explicit NLLLossImpl(const NLLLossOptions& options = {});
  Variable forward(const Variable& log_probs, const Variable& target);

  NLLLossOptions options;
};
LOCKSTEP_MODULE(NLLLoss);

class MSELossOptions {
 public:
  MSELossOptions(Reduction r = Reduction::kMean) : reduction_(r) {}  // NOLINT

  MSELossOptions& reduction(Reduction r) { return reduction_ = r, *this; }
  Reduction reduction() const { return reduction_; }

 private:
  Reduction reduction_;
};

// x and target of one shape.
class MSELossImpl : public Module {
 public:
  explicit MSELossImpl(const MSELossOptions& given = {}) : options(given) {}
  Variable forward(const Variable& x, const Variable& target);

  MSELossOptions options;
};
LOCKSTEP_MODULE(MSELoss);

class BCEWithLogitsLossOptions {
 public:
  BCEWithLogitsLossOptions& weight(Tensor w) { return values_.weight = std::move(w), *this; }
  BCEWithLogitsLossOptions& pos_weight(Tensor w) {
    return values_.pos_weight = std::move(w), *this;
  }
  BCEWithLogitsLossOptions& reduction(Reduction r) { return values_.reduction = r, *this; }
  const BceOptions& values() const { return values_; }

 private:
  BceOptions values_;
};

// Logits and targets in [0, 1] of one shape.
class BCEWithLogitsLossImpl : public Module {
 public:
  explicit BCEWithLogitsLossImpl(const BCEWithLogitsLossOptions& options = {});
  Variable forward(const Variable& x, const Variable& target);

  BCEWithLogitsLossOptions options;
};
LOCKSTEP_MODULE(BCEWithLogitsLoss);

}  // namespace lockstep::nn
