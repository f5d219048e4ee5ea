#include "lockstep/dist/bucket_plan.h"

#include <gtest/gtest.h>

#include <numeric>

#include "lockstep/core/error.h"

namespace lockstep::dist {
namespace {

using Plan = std::vector<std::vector<std::size_t>>;
constexpr std::size_t kMiB = std::size_t{1} << 20;

std::vector<std::size_t> in_order(std::size_t n) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Plan plan(const std::vector<std::size_t>& bytes, BucketCaps caps = {}) {
  return plan_buckets(bytes, std::vector<DType>(bytes.size(), kF32), caps, in_order(bytes.size()));
}

TEST(BucketPlan, WorkedExampleOfPyTorchsRule) {
  std::vector<std::size_t> bytes;
  for (const double mib : {0.5, 0.5, 10., 10., 10., 3., 30., 1.})
    bytes.push_back(static_cast<std::size_t>(mib * kMiB));
  EXPECT_EQ(plan(bytes), (Plan{{0, 1}, {2, 3, 4}, {5, 6}, {7}}));
}

TEST(BucketPlan, EmptyAndSingle) {
  EXPECT_EQ(plan({}), Plan{});
  EXPECT_EQ(plan({4}), (Plan{{0}}));
  EXPECT_EQ(plan({0, 0, 0}), (Plan{{0, 1, 2}}));
}

TEST(BucketPlan, AParameterAboveTheCapIsNeverSplit) {
  EXPECT_EQ(plan({100 * kMiB, 1, 100 * kMiB}), (Plan{{0}, {1, 2}}));
}

TEST(BucketPlan, OneOpenBucketPerDtype) {
  const std::vector<std::size_t> bytes(6, 8);
  const std::vector<DType> dtypes{kF32, kF16, kF32, kF16, kF32, kF16};
  EXPECT_EQ(plan_buckets(bytes, dtypes, {16, 16}, in_order(6)), (Plan{{0, 2}, {1, 3}, {4}, {5}}));
}

TEST(BucketPlan, TheFirstCapHoldsOncePerDtype) {
  const std::vector<std::size_t> bytes(8, 8);
  const std::vector<DType> dtypes{kF32, kF32, kF32, kF32, kF64, kF64, kF64, kF64};
  EXPECT_EQ(plan_buckets(bytes, dtypes, {8, 24}, in_order(8)),
            (Plan{{0}, {1, 2, 3}, {4}, {5, 6, 7}}));
}

TEST(BucketPlan, FollowsTheGivenOrder) {
  const std::vector<std::size_t> bytes(4, 8), order{2, 0, 3, 1};
  EXPECT_EQ(plan_buckets(bytes, std::vector<DType>(4, kF32), {16, 16}, order),
            (Plan{{2, 0}, {3, 1}}));
  EXPECT_EQ(reverse_order(3), (std::vector<std::size_t>{2, 1, 0}));
}

TEST(BucketPlan, BucketsAreInTheOrderOfCompletion) {
  // The f16 bucket opens first but is complete last.
  const std::vector<std::size_t> bytes{4, 8, 8, 4};
  const std::vector<DType> dtypes{kF16, kF32, kF32, kF16};
  EXPECT_EQ(plan_buckets(bytes, dtypes, {16, 16}, in_order(4)), (Plan{{1, 2}, {0, 3}}));
}

TEST(BucketPlan, BadOrdersAreRefused) {
  const std::vector<std::size_t> bytes(2, 8), twice{0, 0}, outside{0, 2}, one{0};
  const std::vector<DType> dtypes(2, kF32);
  EXPECT_THROW(plan_buckets(bytes, dtypes, {}, twice), Error);
  EXPECT_THROW(plan_buckets(bytes, dtypes, {}, outside), Error);
  EXPECT_THROW(plan_buckets(bytes, dtypes, {}, one), Error);
}

}  // namespace
}  // namespace lockstep::dist
