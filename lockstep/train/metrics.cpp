#include "lockstep/train/metrics.h"

#include <limits>

#include "lockstep/core/dispatch.h"

namespace lockstep::train {

std::int64_t count_correct(const Tensor& logits, const Tensor& targets) {
  LOCKSTEP_CHECK(logits.dim() == 2 && targets.dim() == 1 && logits.size(0) == targets.size(0),
                 "count_correct: expected logits (N, C) and targets (N,) but got {} and {}",
                 logits.shape(), targets.shape());
  const Tensor rows = logits.to(kCpu).contiguous(), wanted = targets.to(kCpu).contiguous();
  const auto* target = wanted.data<std::int64_t>();
  const std::int64_t n = rows.size(0), c = rows.size(1);
  std::int64_t correct = 0;
  visit_floating(rows.dtype(), "count_correct", [&]<class T>() {
    const T* row = rows.data<T>();
    for (std::int64_t i = 0; i < n; ++i, row += c) {
      std::int64_t best = 0;
      for (std::int64_t j = 1; j < c; ++j)
        if (static_cast<double>(row[j]) > static_cast<double>(row[best])) best = j;
      correct += c > 0 && best == target[i];
    }
  });
  return correct;
}

void Totals::add(double mean_loss, std::int64_t batch_correct, std::int64_t batch_size) {
  loss_sum += mean_loss * static_cast<double>(batch_size);
  correct += batch_correct;
  count += batch_size;
}

double Totals::mean_loss() const {
  return count == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : loss_sum / static_cast<double>(count);
}

double Totals::accuracy() const {
  return count == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : static_cast<double>(correct) / static_cast<double>(count);
}

Totals reduce(const Totals& mine, const Agreement& agreement) {
  Totals all;
  all.loss_sum = agreement.sum(mine.loss_sum).value();
  // Counts are exact in f64 up to 2^53.
  all.correct = static_cast<std::int64_t>(agreement.sum(static_cast<double>(mine.correct)).value());
  all.count = static_cast<std::int64_t>(agreement.sum(static_cast<double>(mine.count)).value());
  return all;
}

}  // namespace lockstep::train
