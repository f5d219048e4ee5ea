// Learning-rate schedules as pure closed forms: the rate at a step, given the base rate. A step is
// whatever the caller counts, an optimizer step or an epoch. Names, defaults and values are
// PyTorch's (torch.optim.lr_scheduler), where a form has them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <vector>

namespace lockstep::optim {

// base * gamma^floor(step / step_size)
struct StepLROptions {
  std::int64_t step_size = 1;
  double gamma = 0.1;
};
double lr_at(std::int64_t step, double base_lr, const StepLROptions& options);

// base * gamma^(number of milestones <= step); one listed twice counts twice.
struct MultiStepLROptions {
  std::vector<std::int64_t> milestones = {};
  double gamma = 0.1;
};
double lr_at(std::int64_t step, double base_lr, const MultiStepLROptions& options);

// base * gamma^step
struct ExponentialLROptions {
  double gamma = 0.9;
};
double lr_at(std::int64_t step, double base_lr, const ExponentialLROptions& options);

// base * (start + (end - start) * min(step, total_iters) / total_iters)
struct LinearLROptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  std::int64_t total_iters = 5;
};
double lr_at(std::int64_t step, double base_lr, const LinearLROptions& options);

// base * factor before total_iters, base from there.
struct ConstantLROptions {
  double factor = 1.0 / 3;
  std::int64_t total_iters = 5;
};
double lr_at(std::int64_t step, double base_lr, const ConstantLROptions& options);

// base * (1 - min(step, total_iters) / total_iters)^power
struct PolynomialLROptions {
  std::int64_t total_iters = 5;
  double power = 1;
};
double lr_at(std::int64_t step, double base_lr, const PolynomialLROptions& options);

// eta_min + (base - eta_min) * (1 + cos(pi * step / T_max)) / 2, with period 2 T_max.
struct CosineAnnealingLROptions {
  std::int64_t t_max = 1;
  double eta_min = 0;
};
double lr_at(std::int64_t step, double base_lr, const CosineAnnealingLROptions& options);

// The falling half of the cosine, again and again: the first takes T_0 steps, each next one T_mult
// times as many (SGDR, Loshchilov & Hutter 2017). The step may be a fraction of an epoch.
struct CosineAnnealingWarmRestartsOptions {
  std::int64_t t_0 = 1;
  std::int64_t t_mult = 1;
  double eta_min = 0;
};
double lr_at(double step, double base_lr, const CosineAnnealingWarmRestartsOptions& options);

// A linear warm-up over warmup_steps = W steps: base * (step + 1) / W, so that the first step
// already learns, or in the from-zero form base * step / W. Then base, or with cosine_total = E
// base * (1 + cos(pi * (step - W) / (E - W))) / 2, and 0 from step E on.
struct WarmupLROptions {
  std::int64_t warmup_steps = 0;
  bool from_zero = false;
  std::optional<std::int64_t> cosine_total = std::nullopt;
};
double lr_at(std::int64_t step, double base_lr, const WarmupLROptions& options);

// Each throws Error where the options are not usable (a period below 1, a factor that is negative,
// …). lr_at expects checked options and step >= 0.
void check(const StepLROptions& options);
void check(const MultiStepLROptions& options);
void check(const ExponentialLROptions& options);
void check(const LinearLROptions& options);
void check(const ConstantLROptions& options);
void check(const PolynomialLROptions& options);
void check(const CosineAnnealingLROptions& options);
void check(const CosineAnnealingWarmRestartsOptions& options);
void check(const WarmupLROptions& options);

// Any of them: (step, base rate) -> rate.
using Schedule = std::function<double(double step, double base_lr)>;

template <class Options>
Schedule make_schedule(const Options& options) {
  check(options);
  return [options](double step, double base_lr) {
    if constexpr (std::is_same_v<Options, CosineAnnealingWarmRestartsOptions>)
      return lr_at(step, base_lr, options);
    else
      return lr_at(static_cast<std::int64_t>(step), base_lr, options);
  };
}

// schedules[i] from step milestones[i - 1] on, with its own steps from 0. Throws Error unless there
// is one milestone less than schedules and they rise.
Schedule sequential_schedule(std::vector<Schedule> schedules, std::vector<std::int64_t> milestones);

}  // namespace lockstep::optim
