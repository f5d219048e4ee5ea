// What repeated measurements come to: of one rank's samples, and across ranks. Pure functions.
#pragma once

#include <algorithm>
#include <vector>

namespace lockstep::bench {

struct Statistics {
  double min = 0, median = 0, mean = 0, max = 0, p5 = 0, p95 = 0;
  int n = 0;        // samples that count
  int warm_up = 0;  // dropped from the front
};

inline double percentile(const std::vector<double>& sorted, double p) {
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

// The first `warm_up` samples (cold caches, first faults) do not count.
inline Statistics summarize(std::vector<double> samples, int warm_up) {
  Statistics s;
  s.warm_up = std::min(warm_up, static_cast<int>(samples.size()));
  samples.erase(samples.begin(), samples.begin() + s.warm_up);
  s.n = static_cast<int>(samples.size());
  if (samples.empty()) return s;
  std::sort(samples.begin(), samples.end());
  for (const double x : samples) s.mean += x / static_cast<double>(samples.size());
  s.min = samples.front();
  s.max = samples.back();
  s.median = percentile(samples, 0.5);
  s.p5 = percentile(samples, 0.05);
  s.p95 = percentile(samples, 0.95);
  return s;
}

// A collective takes as long as its slowest rank; bandwidths come from `max`.
struct RankTimes {
  double min = 0, mean = 0, max = 0;
};
inline RankTimes across_ranks(const std::vector<double>& seconds) {
  RankTimes t;
  if (seconds.empty()) return t;
  t.min = *std::min_element(seconds.begin(), seconds.end());
  t.max = *std::max_element(seconds.begin(), seconds.end());
  for (const double x : seconds) t.mean += x / static_cast<double>(seconds.size());
  return t;
}

}  // namespace lockstep::bench
