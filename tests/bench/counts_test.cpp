// Counts and rates of benchmark results, on numbers that were reported wrong elsewhere.
#include <gtest/gtest.h>

#include <vector>

#include "bench/flops.h"
#include "bench/machine.h"
#include "bench/run_counts.h"

namespace lockstep::bench {
namespace {

// A convolution did more FLOP/s than the card can: groups were not counted (pytorch/pytorch#13821).
TEST(Flop, OfConvolutionsCountsGroups) {
  ConvSize c{1, 256, 384, 3, 3, 13, 13};
  EXPECT_EQ(conv_flop(c), 299040768);
  c.groups = 2;
  EXPECT_EQ(conv_flop(c), 149520384);
}

// Units and convention had to be guessed (baidu-research/DeepBench#105).
TEST(Flop, OfMatrixProducts) {
  EXPECT_EQ(gemm_flop(1024, 1024, 1024), 2147483648);
  EXPECT_NEAR(tflop_per_s(gemm_flop(1024, 1024, 1024), 1e-3), 2.147483648, 1e-12);
  EXPECT_EQ(gemm_flop(3, 5, 7), gemm_flop(5, 3, 7));
  EXPECT_NE(std::string(kFlopConvention).find("2 per multiply-add"), std::string::npos);
}

// By hand, per image, in multiply-adds: convolutions 389,376 (which has two products, the others
// three), 42,467,328, 29,491,200, 75,497,472; linear layers 4,194,304 and 5,120.
TEST(Flop, OfAToyNetStep) {
  const std::int64_t others = 42467328 + 29491200 + 75497472 + 4194304 + 5120;
  EXPECT_EQ(toy_net_step_flop(1), 2 * (2 * 389376 + 3 * others));
  EXPECT_EQ(toy_net_step_flop(64), 64 * toy_net_step_flop(1));
}

// "Samples" and "epoch" meant different things per benchmark (mlcommons/logging#276).
TEST(RunCounts, LastBatchIsSeenOrDropped) {
  const RunCounts kept = count_run(1281167, 1024, 3, false);
  EXPECT_EQ(kept.steps_per_epoch, 1252);
  EXPECT_EQ(kept.last_batch, 143);
  EXPECT_EQ(kept.samples_seen, 3843501);
  EXPECT_FALSE(kept.drop_last);
  const RunCounts dropped = count_run(1281167, 1024, 3, true);
  EXPECT_EQ(dropped.steps_per_epoch, 1251);
  EXPECT_EQ(dropped.last_batch, 1024);
  EXPECT_EQ(dropped.samples_seen, 3843072);
  EXPECT_TRUE(dropped.drop_last);
}

TEST(RunCounts, Edges) {
  EXPECT_EQ(count_run(2048, 1024, 2, false).steps_per_epoch, 2);
  EXPECT_EQ(count_run(2048, 1024, 2, false).samples_seen, 4096);
  EXPECT_EQ(count_run(10, 1024, 1, true).steps_per_epoch, 0);
  EXPECT_EQ(count_run(10, 1024, 1, true).last_batch, 0);
  EXPECT_EQ(count_run(10, 1024, 1, false).last_batch, 10);
  EXPECT_EQ(count_run(0, 1024, 5, false).samples_seen, 0);
  EXPECT_THROW(count_run(10, 0, 1, false), std::invalid_argument);
}

// Runs with equal seeds counted as independent (mlcommons/training_policies#479).
TEST(RunCounts, EqualSeedsAreOneResult) {
  const SeedCount c = count_seeds({1, 2, 2, 4, 5});
  EXPECT_EQ(c.independent, 4);
  EXPECT_EQ(c.duplicated, (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(c.first_of_each, (std::vector<std::size_t>{0, 1, 3, 4}));
  EXPECT_EQ(count_seeds({7, 7, 7}).independent, 1);
  EXPECT_TRUE(count_seeds({}).duplicated.empty());
}

// The maximum of resident memory is that of this program, and stays when it is given back.
TEST(Machine, PeakResidentMemoryCountsPagesThatWereTouched) {
  const std::int64_t before = peak_resident_bytes();
  EXPECT_GT(before, 1 << 20);
  std::vector<char> block(64 << 20);
  for (std::size_t i = 0; i < block.size(); i += 1024) block[i] = 1;
  const std::int64_t with_block = peak_resident_bytes();
  EXPECT_GT(with_block, before / 2 + (48 << 20));
  std::vector<char>().swap(block);
  EXPECT_GT(peak_resident_bytes(), with_block - (4 << 20));  // counters of the kernel lag a little
}

TEST(Machine, FactsAreThere) {
  EXPECT_FALSE(cpu_model().empty());
  EXPECT_GE(allowed_cores(), 1);
  EXPECT_FALSE(governor().empty());
  EXPECT_NE(compiler().find(' '), std::string::npos);
  EXPECT_FALSE(build_flags().empty());
  EXPECT_GT(seconds_since_process_start(), -0.02);
  EXPECT_LT(seconds_since_process_start(), 3600);
}

}  // namespace
}  // namespace lockstep::bench
