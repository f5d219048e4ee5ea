// The arithmetic behind benchmark figures, on numbers that were reported wrong elsewhere.
#include "bench/bandwidth.h"
#include "bench/sample_statistics.h"

#include <gtest/gtest.h>

#include <thread>

#include "bench/timed_calls.h"

namespace lockstep::bench {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// The (n-1)/n of all-gather sat in the wrong column (NVIDIA/nccl-tests#45).
TEST(Bandwidth, AllGatherAndReduceScatter) {
  EXPECT_NEAR(algorithm_bandwidth(256 * kMiB, 10e-3), 26.8435456, 1e-9);
  EXPECT_NEAR(*bus_bandwidth(Traffic::kAllGather, 256 * kMiB, 10e-3, 4), 20.1326592, 1e-9);
  EXPECT_NEAR(*bus_bandwidth(Traffic::kReduceScatter, 256 * kMiB, 10e-3, 4), 20.1326592, 1e-9);
  EXPECT_NEAR(*bus_bandwidth(Traffic::kBroadcast, 256 * kMiB, 10e-3, 4), 26.8435456, 1e-9);
}

// Bandwidth was multiplied by the number of GPUs (ROCm/rccl#26).
TEST(Bandwidth, AllReduce) {
  EXPECT_NEAR(algorithm_bandwidth(100000000, 10e-3), 10.0, 1e-12);
  EXPECT_NEAR(*bus_bandwidth(Traffic::kAllReduce, 100000000, 10e-3, 4), 15.0, 1e-12);
}

// GB/s are 10^9 bytes, whatever the size is called (meta-pytorch/torchcomms#196).
TEST(Bandwidth, UnitsAreDecimalAndSizesAreDocumented) {
  EXPECT_NEAR(algorithm_bandwidth(std::int64_t{1} << 30, 1.0), 1.073741824, 1e-12);
  EXPECT_NEAR(algorithm_bandwidth(100 * kMiB, 1.0) * 1000, 104.8576, 1e-9);
  EXPECT_EQ(parse_size("1M"), 1048576);
  EXPECT_EQ(parse_size("1MB"), 1000000);
  EXPECT_EQ(parse_size("1MiB"), 1048576);
  EXPECT_EQ(parse_size("1.5k"), 1536);
  EXPECT_EQ(parse_size("8"), 8);
  EXPECT_EQ(parse_size("8B"), 8);
  EXPECT_EQ(parse_size("2gb"), 2000000000);
  for (const char* bad : {"", "M", "1X", "1MiBs", "-1", "1 M", "nan", "1e30"})
    EXPECT_THROW(parse_size(bad), std::invalid_argument) << bad;
}

// A rank whose clock stops early must not decide (NVIDIA/nccl-tests#82).
TEST(Bandwidth, TheSlowestRankDecides) {
  const RankTimes t = across_ranks({1e-3, 4e-3});
  EXPECT_DOUBLE_EQ(t.max, 4e-3);
  EXPECT_DOUBLE_EQ(t.min, 1e-3);
  EXPECT_DOUBLE_EQ(t.mean, 2.5e-3);
}

// One rank has no bus: no figure, rather than 0 in the average (NVIDIA/nccl-tests#71).
TEST(Bandwidth, OneRankHasNone) {
  EXPECT_FALSE(bus_bandwidth(Traffic::kAllReduce, kMiB, 1e-3, 1).has_value());
  const SweepSummary s = summarize_sweep({{kMiB, std::nullopt}, {2 * kMiB, 8.0}}, kMiB);
  EXPECT_EQ(*s.range_mean, 8.0);
  EXPECT_EQ(s.range_n, 1);
  EXPECT_FALSE(summarize_sweep({{kMiB, std::nullopt}}, 0).peak.has_value());
}

// The mean over all sizes is ruled by latency (NVIDIA/DCGM#111).
TEST(Bandwidth, ASweepGivesPeakAndRange) {
  std::vector<SizedBandwidth> rows;
  for (int k = 0; k < 32; ++k) {
    const std::int64_t bytes = std::int64_t{8} << k;
    const double seconds = 10e-6 + static_cast<double>(bytes) / 100e9;
    rows.push_back({bytes, algorithm_bandwidth(bytes, seconds)});
  }
  const SweepSummary s = summarize_sweep(rows, kMiB);
  EXPECT_NEAR(*s.peak, 99.994, 5e-4);
  EXPECT_EQ(s.peak_bytes, std::int64_t{8} << 31);
  EXPECT_NEAR(*s.range_mean, 91.835, 5e-4);
}

// What is printed is what was run, in whole elements (NVIDIA/nccl-tests#104).
TEST(Bandwidth, SweptSizesAreWholeElements) {
  const auto sizes = sweep_sizes(12, parse_size("50M"), parse_size("3M"), 0, 4);
  ASSERT_EQ(sizes.size(), 17u);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(sizes[i] % 4, 0);
    EXPECT_EQ(sizes[i], 12 + static_cast<std::int64_t>(i) * 3 * kMiB);
  }
  EXPECT_EQ(sweep_sizes(8, 64, 0, 2, 4), (std::vector<std::int64_t>{8, 16, 32, 64}));
  EXPECT_EQ(sweep_sizes(10, 10, 0, 2, 4), (std::vector<std::int64_t>{8}));
  EXPECT_EQ(sweep_sizes(1, 9, 0, 1.1, 4), (std::vector<std::int64_t>{0, 4, 8}));
  EXPECT_THROW(sweep_sizes(8, 64, 0, 1, 4), std::invalid_argument);
  EXPECT_THROW(sweep_sizes(64, 8, 0, 2, 4), std::invalid_argument);
}

// Repeated in place, sums are powers (NVIDIA/TensorRT-LLM#6271).
TEST(Bandwidth, RepeatedSumsInPlace) { EXPECT_EQ(repeated_in_place_sum(2, 4, 3), 128); }

// The cold first run is no sample (dotnet/sdk#2449).
TEST(Bandwidth, WarmUpDoesNotCount) {
  std::vector<double> ms(10, 20);
  ms[0] = 200;
  const Statistics s = summarize(ms, 1);
  EXPECT_DOUBLE_EQ(s.mean, 20);
  EXPECT_DOUBLE_EQ(s.median, 20);
  EXPECT_EQ(s.n, 9);
  EXPECT_EQ(s.warm_up, 1);
  EXPECT_DOUBLE_EQ(summarize(ms, 0).mean, 38);
  EXPECT_DOUBLE_EQ(summarize({4, 1, 2, 3}, 0).median, 2.5);
  EXPECT_EQ(summarize({1}, 5).n, 0);
}

// The clock runs until asynchronous calls are done (NVIDIA/DALI#3638).
TEST(Bandwidth, TheClockStopsWhenAsynchronousCallsAreDone) {
  using Clock = std::chrono::steady_clock;
  struct Later {
    Clock::time_point end;
    void wait() { std::this_thread::sleep_until(end); }
  };
  Clock::time_point free_from = Clock::now();
  const double seconds = time_until_done(3, [&] {
    free_from = std::max(free_from, Clock::now()) + std::chrono::milliseconds(50);
    return std::make_unique<Later>(Later{free_from});
  });
  EXPECT_GE(seconds, 0.150);
}

}  // namespace
}  // namespace lockstep::bench
