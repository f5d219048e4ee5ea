#include "lockstep/train/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/data/distributed_sampler.h"
#include "lockstep/dist/process_group.h"

namespace lockstep::train {
namespace {

TEST(Metrics, CountCorrectTakesTheFirstOfEquals) {
  const Tensor logits = tensor({1.f, 2.f, 2.f, 0.f, 0.f, 0.f, -1.f, -2.f, -3.f}, {3, 3});
  EXPECT_EQ(count_correct(logits, tensor<std::int64_t>({1, 0, 0})), 3);
  EXPECT_EQ(count_correct(logits, tensor<std::int64_t>({2, 1, 2})), 0);
  EXPECT_EQ(count_correct(zeros({0, 3}), zeros({0}, {.dtype = kI64})), 0);
  EXPECT_THROW(count_correct(logits, zeros({2}, {.dtype = kI64})), Error);
  EXPECT_THROW(count_correct(zeros({3}), zeros({3}, {.dtype = kI64})), Error);
}

TEST(Metrics, BatchesOfDifferentSizesCountByTheirExamples) {
  Totals totals;
  totals.add(0.5, 3, 100);
  totals.add(0.3, 5, 900);
  EXPECT_DOUBLE_EQ(totals.mean_loss(), 0.32);
  EXPECT_DOUBLE_EQ(totals.accuracy(), 0.008);
  EXPECT_TRUE(std::isnan(Totals{}.mean_loss()));
  EXPECT_TRUE(std::isnan(Totals{}.accuracy()));
}

// pytorch/pytorch#25162: five examples on two ranks, only the first is wrong. Padding would make it
// 4/6.
TEST(Metrics, EvaluationOverRanksIsExact) {
  dist::run_local_ranks(2, [](dist::ProcessGroup& group) {
    data::ExactDistributedSampler sampler(5, group.rank(), group.size());
    Totals mine;
    for (const std::int64_t index : sampler.indices()) mine.add(1, index == 0 ? 0 : 1, 1);
    const Totals all = reduce(mine, Agreement(group));
    EXPECT_EQ(all.count, 5);
    EXPECT_EQ(all.correct, 4);
    EXPECT_EQ(all.accuracy(), 4.0 / 5);
    EXPECT_EQ(all.mean_loss(), 1);
  });
}

}  // namespace
}  // namespace lockstep::train
