// Loss and accuracy over examples, on one rank or on all.
#pragma once

#include <cstdint>

#include "lockstep/core/tensor.h"
#include "lockstep/train/agree.h"

namespace lockstep::train {

// How many rows of logits (N, C) have their largest value (the first of equals) at the target (N,)
// i64. Throws Error where the shapes don't fit.
std::int64_t count_correct(const Tensor& logits, const Tensor& targets);

// Sums that may be added up over batches and ranks of different sizes without a mean of means.
struct Totals {
  double loss_sum = 0;  // of examples, not of batches
  std::int64_t correct = 0;
  std::int64_t count = 0;

  void add(double mean_loss, std::int64_t batch_correct, std::int64_t batch_size);
  // NaN without examples.
  double mean_loss() const;
  double accuracy() const;
};

// Collective: the sum over all ranks.
Totals reduce(const Totals& mine, const Agreement& agreement);

}  // namespace lockstep::train
