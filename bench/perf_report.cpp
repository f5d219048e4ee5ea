#include "bench/perf_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "bench/machine.h"
#include "lockstep/dist/reduce.h"

namespace lockstep::bench {
namespace {

constexpr std::int64_t kRangeBegin = 1 << 20;

std::string gb(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "n/a";
}

std::optional<double> busbw(const PerfRun& run, const PerfResult& r) {
  if (r.bytes == 0) return std::nullopt;
  return bus_bandwidth(Traffic::kAllReduce, r.bytes, r.ranks.max, run.ranks);
}

std::string half_row(const PerfRun& run, const PerfResult& r) {
  const std::string wrong =
      r.wrong.empty()
          ? "n/a"
          : std::to_string(std::accumulate(r.wrong.begin(), r.wrong.end(), std::int64_t{0}));
  return fmt::format("{:>11.2f} {:>9.3f} {:>9} {:>7}", r.ranks.max * 1e6,
                     algorithm_bandwidth(r.bytes, r.ranks.max), gb(busbw(run, r)), wrong);
}

nlohmann::json number(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace

std::string table_header(const PerfRun& run) {
  std::string text = fmt::format(
      "# all_reduce_perf: {} ranks, transport {}, {} memory, {}, {} samples after {} warm-up\n"
      "# {}, {} cores allowed, load {:.2f}, {}\n",
      run.ranks, run.transport, run.options.plain_memory ? "plain" : "symmetric",
      run.options.asynchronous ? "through the queue" : "on the caller's thread",
      run.options.iterations, run.options.warm_up, cpu_model(), allowed_cores(), load_average(),
      dist::reduce_instruction_set());
  text += "# time: median of the samples, slowest rank; GB/s: 10^9 bytes per second\n";
  text += fmt::format("#{:>11} {:>12} {:>6} {:>8} | {:^39} | {:^39} | {:>9}\n", "", "", "", "",
                      "out-of-place", "in-place", "");
  text += fmt::format("#{:>11} {:>12} {:>6} {:>8}", "size (B)", "count", "type", "redop");
  for (int i = 0; i < 2; ++i)
    text +=
        fmt::format(" | {:>11} {:>9} {:>9} {:>7}", "time (us)", "alg GB/s", "bus GB/s", "#wrong");
  return text + fmt::format(" | {:>9}\n", "lim GB/s");
}

std::string table_row(const PerfRun& run, const PerfResult& out, const PerfResult& in) {
  return fmt::format(" {:>11} {:>12} {:>6} {:>8} | {} | {} | {:>9}\n", out.bytes, out.count,
                     dtype_name(run.options.dtype), dist::reduce_op_name(run.options.op),
                     half_row(run, out), half_row(run, in), gb(in.limit));
}

std::string table_footer(const PerfRun& run) {
  std::string text;
  for (const bool in_place : {false, true}) {
    std::vector<SizedBandwidth> rows;
    for (const PerfResult& r : run.results)
      if (r.in_place == in_place) rows.push_back({r.bytes, busbw(run, r)});
    const SweepSummary s = summarize_sweep(rows, kRangeBegin);
    text +=
        fmt::format("# {}: peak bus bandwidth {} GB/s at {} B; mean of {} sizes from 1 MiB {}{}\n",
                    in_place ? "in-place" : "out-of-place", gb(s.peak), s.peak_bytes, s.range_n,
                    gb(s.range_mean), s.range_mean ? " GB/s" : "");
  }
  const std::vector<int> failed = failed_ranks(run);
  if (!failed.empty()) text += fmt::format("# WRONG results on rank {}\n", fmt::join(failed, ", "));
  return text;
}

std::string to_json(const PerfRun& run) {
  nlohmann::json results = nlohmann::json::array();
  for (const PerfResult& r : run.results) {
    nlohmann::json record = {
        {"op", "all_reduce"},
        {"redop", dist::reduce_op_name(run.options.op)},
        {"dtype", dtype_name(run.options.dtype)},
        {"count", r.count},
        {"bytes", r.bytes},
        {"ranks", run.ranks},
        {"in_place", r.in_place},
        {"time_us", r.ranks.max * 1e6},
        {"rank_time_us",
         {{"min", r.ranks.min * 1e6}, {"mean", r.ranks.mean * 1e6}, {"max", r.ranks.max * 1e6}}},
        {"sample_us",
         {{"min", r.samples.min * 1e6},
          {"p5", r.samples.p5 * 1e6},
          {"median", r.samples.median * 1e6},
          {"p95", r.samples.p95 * 1e6},
          {"max", r.samples.max * 1e6}}},
        {"samples", r.samples.n},
        {"warm_up", r.samples.warm_up},
        {"algbw_gb_per_s", algorithm_bandwidth(r.bytes, r.ranks.max)},
        {"busbw_gb_per_s", number(busbw(run, r))},
        {"limit_gb_per_s", number(r.limit)},
    };
    record["wrong_by_rank"] = r.wrong.empty() ? nlohmann::json(nullptr) : nlohmann::json(r.wrong);
    results.push_back(std::move(record));
  }
  const nlohmann::json all = {
      {"schema", "lockstep.all_reduce_perf"},
      {"schema_version", 1},
      {"ranks", run.ranks},
      {"transport", run.transport},
      {"symmetric_memory", !run.options.plain_memory},
      {"asynchronous", run.options.asynchronous},
      {"machine",
       {{"cpu", cpu_model()},
        {"allowed_cores", allowed_cores()},
        {"load", load_average()},
        {"vectors", dist::reduce_instruction_set()},
        {"governor", governor()},
        {"compiler", compiler()},
        {"flags", build_flags()}}},
      {"failed_ranks", failed_ranks(run)},
      {"results", std::move(results)},
  };
  return all.dump(2) + "\n";
}

std::vector<int> failed_ranks(const PerfRun& run) {
  std::set<int> failed;
  for (const PerfResult& r : run.results)
    for (std::size_t rank = 0; rank < r.wrong.size(); ++rank)
      if (r.wrong[rank] > 0) failed.insert(static_cast<int>(rank));
  return {failed.begin(), failed.end()};
}

}  // namespace lockstep::bench
