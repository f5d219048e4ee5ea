#include "lockstep/optim/lr_schedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/core/check.h"

namespace lockstep::optim {
namespace {

// (1 + cos(pi * x)) / 2: from 1 at x = 0 to 0 at x = 1.
double half_cosine(double x) { return (1 + std::cos(std::numbers::pi * x)) / 2; }

double ratio(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

void check_gamma(const char* name, double gamma) {
  LOCKSTEP_CHECK(std::isfinite(gamma) && gamma >= 0,
                 "{}: gamma must be finite and not negative but is {}", name, gamma);
}

void check_at_least(const char* name, const char* option, std::int64_t value, std::int64_t least) {
  LOCKSTEP_CHECK(value >= least, "{}: {} must be at least {} but is {}", name, option, least,
                 value);
}

void check_share(const char* name, const char* option, double value) {
  LOCKSTEP_CHECK(value >= 0 && value <= 1, "{}: {} must be in [0, 1] but is {}", name, option,
                 value);
}

void check_eta_min(const char* name, double eta_min) {
  LOCKSTEP_CHECK(std::isfinite(eta_min) && eta_min >= 0,
                 "{}: eta_min must be finite and not negative but is {}", name, eta_min);
}

}  // namespace

double lr_at(std::int64_t step, double base_lr, const StepLROptions& options) {
  return base_lr * std::pow(options.gamma, static_cast<double>(step / options.step_size));
}

double lr_at(std::int64_t step, double base_lr, const MultiStepLROptions& options) {
  const auto passed = std::count_if(options.milestones.begin(), options.milestones.end(),
                                    [&](std::int64_t m) { return m <= step; });
  return base_lr * std::pow(options.gamma, static_cast<double>(passed));
}

double lr_at(std::int64_t step, double base_lr, const ExponentialLROptions& options) {
  return base_lr * std::pow(options.gamma, static_cast<double>(step));
}

double lr_at(std::int64_t step, double base_lr, const LinearLROptions& options) {
  if (step >= options.total_iters) return base_lr * options.end_factor;
  return base_lr * (options.start_factor +
                    (options.end_factor - options.start_factor) * ratio(step, options.total_iters));
}

double lr_at(std::int64_t step, double base_lr, const ConstantLROptions& options) {
  return step < options.total_iters ? base_lr * options.factor : base_lr;
}

double lr_at(std::int64_t step, double base_lr, const PolynomialLROptions& options) {
  const std::int64_t at = std::min(step, options.total_iters);
  return base_lr * std::pow(1 - ratio(at, options.total_iters), options.power);
}

double lr_at(std::int64_t step, double base_lr, const CosineAnnealingLROptions& options) {
  // The remainder keeps the cosine's argument small, and so exact, on long runs.
  const std::int64_t at = step % (2 * options.t_max);
  return options.eta_min + (base_lr - options.eta_min) * half_cosine(ratio(at, options.t_max));
}

double lr_at(double step, double base_lr, const CosineAnnealingWarmRestartsOptions& options) {
  const auto t_0 = static_cast<double>(options.t_0);
  const auto t_mult = static_cast<double>(options.t_mult);
  double period = t_0, at = 0;
  if (options.t_mult == 1) {
    at = std::fmod(step, t_0);
  } else {
    double start = 0;
    while (step >= start + period) {
      start += period;
      period *= t_mult;
    }
    at = step - start;
  }
  return options.eta_min + (base_lr - options.eta_min) * half_cosine(at / period);
}

double lr_at(std::int64_t step, double base_lr, const WarmupLROptions& options) {
  const std::int64_t w = options.warmup_steps;
  if (step < w) return base_lr * ratio(options.from_zero ? step : step + 1, w);
  if (!options.cosine_total) return base_lr;
  const std::int64_t e = *options.cosine_total;
  return step >= e ? 0.0 : base_lr * half_cosine(ratio(step - w, e - w));
}

void check(const StepLROptions& options) {
  check_at_least("StepLR", "step_size", options.step_size, 1);
  check_gamma("StepLR", options.gamma);
}

void check(const MultiStepLROptions& options) { check_gamma("MultiStepLR", options.gamma); }

void check(const ExponentialLROptions& options) { check_gamma("ExponentialLR", options.gamma); }

void check(const LinearLROptions& options) {
  LOCKSTEP_CHECK(options.start_factor > 0 && options.start_factor <= 1,
                 "LinearLR: start_factor must be in (0, 1] but is {}", options.start_factor);
  check_share("LinearLR", "end_factor", options.end_factor);
  check_at_least("LinearLR", "total_iters", options.total_iters, 1);
}

void check(const ConstantLROptions& options) {
  check_share("ConstantLR", "factor", options.factor);
  check_at_least("ConstantLR", "total_iters", options.total_iters, 0);
}

void check(const PolynomialLROptions& options) {
  check_at_least("PolynomialLR", "total_iters", options.total_iters, 1);
  LOCKSTEP_CHECK(std::isfinite(options.power) && options.power >= 0,
                 "PolynomialLR: power must be finite and not negative but is {}", options.power);
}

void check(const CosineAnnealingLROptions& options) {
  check_at_least("CosineAnnealingLR", "t_max", options.t_max, 1);
  check_eta_min("CosineAnnealingLR", options.eta_min);
}

void check(const CosineAnnealingWarmRestartsOptions& options) {
  check_at_least("CosineAnnealingWarmRestarts", "t_0", options.t_0, 1);
  check_at_least("CosineAnnealingWarmRestarts", "t_mult", options.t_mult, 1);
  check_eta_min("CosineAnnealingWarmRestarts", options.eta_min);
}

void check(const WarmupLROptions& options) {
  check_at_least("WarmupLR", "warmup_steps", options.warmup_steps, 0);
  if (options.cosine_total)
    check_at_least("WarmupLR", "cosine_total", *options.cosine_total, options.warmup_steps + 1);
}

Schedule sequential_schedule(std::vector<Schedule> schedules,
                             std::vector<std::int64_t> milestones) {
  LOCKSTEP_CHECK(!schedules.empty() && milestones.size() + 1 == schedules.size(),
                 "SequentialLR: {} schedules need {} milestones but have {}", schedules.size(),
                 schedules.empty() ? 0 : schedules.size() - 1, milestones.size());
  for (std::size_t i = 0; i < milestones.size(); ++i)
    LOCKSTEP_CHECK(milestones[i] > (i == 0 ? 0 : milestones[i - 1]),
                   "SequentialLR: milestones must be positive and rise but milestone {} is {}", i,
                   milestones[i]);
  return [schedules = std::move(schedules), milestones = std::move(milestones)](double step,
                                                                                double base_lr) {
    const auto next = std::upper_bound(milestones.begin(), milestones.end(), step);
    const double start = next == milestones.begin() ? 0.0 : static_cast<double>(*(next - 1));
    return schedules[static_cast<std::size_t>(next - milestones.begin())](step - start, base_lr);
  };
}

}  // namespace lockstep::optim
