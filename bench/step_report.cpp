#include "bench/step_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "bench/flops.h"
#include "bench/machine.h"
#include "bench/run_counts.h"

namespace lockstep::bench {
namespace {

SeedCount seeds_of(const StepRun& run) {
  std::vector<std::uint64_t> seeds;
  for (const StepResult& r : run.results) seeds.push_back(r.seed);
  return count_seeds(seeds);
}

// Over the trainings that are independent of each other.
Statistics rates(const StepRun& run) {
  std::vector<double> values;
  for (const std::size_t i : seeds_of(run).first_of_each)
    values.push_back(run.results[i].images_per_second);
  return summarize(values, 0);
}

std::optional<double> gflop_per_s(const StepRun& run, const StepResult& r) {
  if (run.options.model != "toy_net") return std::nullopt;
  return 1e3 * tflop_per_s(toy_net_step_flop(run.options.batch * run.ranks), r.step.median);
}

}  // namespace

std::string step_text(const StepRun& run) {
  const StepOptions& o = run.options;
  std::string text = fmt::format(
      "# bench_step: {} {} batch {}, {} ranks x {} threads, SGD Nesterov{}, synthetic images\n"
      "# {}, {} cores allowed, load {:.2f}\n"
      "# start to first step {:.3f} s, of it init {:.1f} ms; peak resident memory {:.0f} MB\n",
      o.model, dtype_name(o.dtype), o.batch, run.ranks, o.threads,
      o.lookahead ? " in Lookahead" : "", cpu_model(), run.allowed_cores, load_average(),
      run.start_to_first_step, run.init_seconds * 1e3,
      static_cast<double>(run.peak_resident) / 1e6);
  for (const StepResult& r : run.results) {
    text += fmt::format(
        "{:.1f} img/s  step {:.2f} ms (p5 {:.2f}, p95 {:.2f}; median of {} after {} warm-up), seed "
        "{}, {} samples seen",
        r.images_per_second, r.step.median * 1e3, r.step.p5 * 1e3, r.step.p95 * 1e3, r.step.n,
        r.step.warm_up, r.seed, r.samples_seen);
    if (const auto rate = gflop_per_s(run, r)) text += fmt::format(", {:.1f} GFLOP/s", *rate);
    text += "\n";
  }
  if (o.model == "toy_net") text += fmt::format("# FLOP: {}\n", kFlopConvention);
  if (run.results.size() < 2) return text;
  const SeedCount seeds = seeds_of(run);
  const Statistics s = rates(run);
  text += fmt::format("# median {:.1f} img/s of {} independent trainings (min {:.1f}, max {:.1f})",
                      s.median, seeds.independent, s.min, s.max);
  if (!seeds.duplicated.empty())
    text += fmt::format("; again, not counted: seed {}", fmt::join(seeds.duplicated, ", "));
  return text + "\n";
}

std::string step_json(const StepRun& run) {
  const StepOptions& o = run.options;
  nlohmann::json results = nlohmann::json::array();
  for (const StepResult& r : run.results) {
    const auto rate = gflop_per_s(run, r);
    results.push_back({
        {"seed", r.seed},
        {"images_per_s", r.images_per_second},
        {"step_ms",
         {{"min", r.step.min * 1e3},
          {"p5", r.step.p5 * 1e3},
          {"median", r.step.median * 1e3},
          {"p95", r.step.p95 * 1e3},
          {"max", r.step.max * 1e3}}},
        {"steps", r.step.n},
        {"warm_up", r.step.warm_up},
        {"samples_seen", r.samples_seen},
        {"gflop_per_s", rate ? nlohmann::json(*rate) : nlohmann::json(nullptr)},
        {"first_loss", r.first_loss},
        {"last_loss", r.last_loss},
    });
  }
  const SeedCount seeds = seeds_of(run);
  const Statistics s = rates(run);
  const nlohmann::json all = {
      {"schema", "lockstep.bench_step"},
      {"schema_version", 1},
      {"model", o.model},
      {"dtype", dtype_name(o.dtype)},
      {"batch_per_rank", o.batch},
      {"ranks", run.ranks},
      {"threads_per_rank", o.threads},
      {"lookahead", o.lookahead},
      {"machine",
       {{"cpu", cpu_model()},
        {"allowed_cores", run.allowed_cores},
        {"governor", governor()},
        {"load", load_average()},
        {"compiler", compiler()},
        {"flags", build_flags()}}},
      {"init_ms", run.init_seconds * 1e3},
      {"start_to_first_step_s", run.start_to_first_step},
      {"first_step_at_monotonic_s", run.first_step_at},
      {"peak_resident_mb", static_cast<double>(run.peak_resident) / 1e6},
      {"flop_convention", kFlopConvention},
      {"summary",
       {{"images_per_s_median", s.median},
        {"independent_results", seeds.independent},
        {"duplicated_seeds", seeds.duplicated}}},
      {"results", std::move(results)},
  };
  return all.dump(2) + "\n";
}

}  // namespace lockstep::bench
