// The arithmetic of communication benchmarks: sizes and bandwidths. Pure functions.
//
// Units: bytes are bytes; seconds are seconds; GB/s is 10^9 bytes per second.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace lockstep::bench {

// "8", "1.5K", "1M", "1MiB", "1MB". As in nccl-tests a bare K, M, G, T is a power of 1024; so are
// KiB, MiB, …; KB, MB, … are powers of 1000. Any case. Throws std::invalid_argument.
inline std::int64_t parse_size(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, value);
  const auto fail = [&]() -> std::int64_t {
    throw std::invalid_argument("\"" + std::string(text) +
                                "\" is not a size such as 8, 64K, 1MiB, 1MB");
  };
  if (error != std::errc{} || !(value >= 0)) return fail();
  std::string letters(unit, end);
  for (char& c : letters) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  double scale = 1;
  if (!letters.empty() && letters != "B") {
    const std::size_t power = std::string_view("KMGT").find(letters[0]);
    const std::string rest = letters.substr(1);
    if (power == std::string_view::npos || (rest != "" && rest != "B" && rest != "IB"))
      return fail();
    scale = std::pow(rest == "B" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
  }
  const double bytes = value * scale;
  if (!(bytes < 9e18)) return fail();
  return static_cast<std::int64_t>(bytes);
}

// From `begin` to `end` bytes, each multiplied by `factor` or, if that is at most 1, `step` more
// than the last; each rounded down to whole elements. What is returned is what is run and printed.
inline std::vector<std::int64_t> sweep_sizes(std::int64_t begin, std::int64_t end,
                                             std::int64_t step, double factor,
                                             std::int64_t item_bytes) {
  if (begin < 0 || end < begin || item_bytes < 1 || (factor <= 1 && step < 1 && end > begin))
    throw std::invalid_argument("a sweep needs 0 <= begin <= end and a factor above 1 or a step");
  std::vector<std::int64_t> sizes;
  const auto whole = [&](std::int64_t bytes) { return bytes / item_bytes * item_bytes; };
  for (std::int64_t bytes = begin; bytes <= end;) {
    if (sizes.empty() || whole(bytes) != sizes.back()) sizes.push_back(whole(bytes));
    if (begin == end) break;
    const auto grown = static_cast<std::int64_t>(static_cast<double>(bytes) * factor);
    bytes = factor > 1 ? std::max(grown, bytes + item_bytes) : bytes + step;
  }
  return sizes;
}

enum class Traffic { kAllReduce, kAllGather, kReduceScatter, kBroadcast };

// Bytes per second as the caller sees it, in GB/s. `bytes`: the buffer of all_reduce and broadcast;
// all ranks' blocks together of all_gather and reduce_scatter.
inline double algorithm_bandwidth(std::int64_t bytes, double seconds) {
  return static_cast<double>(bytes) / seconds / 1e9;
}

// What each link has to carry for it, as nccl-tests defines it: comparable with the hardware's
// bandwidth whatever the number of ranks. None for one rank, which sends nothing.
inline std::optional<double> bus_bandwidth(Traffic kind, std::int64_t bytes, double seconds,
                                           int ranks) {
  if (ranks < 2) return std::nullopt;
  const double n = ranks;
  double factor = 1;
  if (kind == Traffic::kAllReduce) factor = 2 * (n - 1) / n;
  if (kind == Traffic::kAllGather || kind == Traffic::kReduceScatter) factor = (n - 1) / n;
  return factor * algorithm_bandwidth(bytes, seconds);
}

// What a sweep comes to: the peak, and the mean over sizes from `range_begin` bytes on. A mean over
// all sizes would say more about latency than about bandwidth, so there is none.
struct SweepSummary {
  std::optional<double> peak;
  std::int64_t peak_bytes = 0;
  std::optional<double> range_mean;
  int range_n = 0;
};
struct SizedBandwidth {
  std::int64_t bytes;
  std::optional<double> gb_per_s;
};
inline SweepSummary summarize_sweep(const std::vector<SizedBandwidth>& rows,
                                    std::int64_t range_begin) {
  SweepSummary s;
  double sum = 0;
  for (const SizedBandwidth& row : rows) {
    if (!row.gb_per_s) continue;
    if (!s.peak || *row.gb_per_s > *s.peak) {
      s.peak = row.gb_per_s;
      s.peak_bytes = row.bytes;
    }
    if (row.bytes < range_begin) continue;
    sum += *row.gb_per_s;
    ++s.range_n;
  }
  if (s.range_n > 0) s.range_mean = sum / s.range_n;
  return s;
}

// Every rank holds x; after k sums in place over n ranks, each of the last one's results.
inline double repeated_in_place_sum(double x, int n, int k) { return x * std::pow(n, k); }

}  // namespace lockstep::bench
