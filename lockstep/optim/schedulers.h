// The schedulers whose schedule is one closed form: StepLR … WarmupLR, SequentialLR and LambdaLR.
#pragma once

#include <utility>
#include <vector>

#include "lockstep/optim/lr_scheduler.h"

namespace lockstep::optim {

// Sets every group's rate to lr_at(step, base rate, options); lr_schedules.h has the formulas.
template <class Options>
class ClosedFormLR : public LRScheduler {
 public:
  // Throws Error where the options are not usable.
  explicit ClosedFormLR(Optimizer& optimizer, const Options& options = {},
                        OnForeignChange on_foreign_change = OnForeignChange::kKeep)
      : LRScheduler(optimizer, {make_schedule(options)}, on_foreign_change) {}
};

using StepLR = ClosedFormLR<StepLROptions>;
using MultiStepLR = ClosedFormLR<MultiStepLROptions>;
using ExponentialLR = ClosedFormLR<ExponentialLROptions>;
using LinearLR = ClosedFormLR<LinearLROptions>;
using ConstantLR = ClosedFormLR<ConstantLROptions>;
using PolynomialLR = ClosedFormLR<PolynomialLROptions>;
using CosineAnnealingLR = ClosedFormLR<CosineAnnealingLROptions>;
using CosineAnnealingWarmRestarts = ClosedFormLR<CosineAnnealingWarmRestartsOptions>;
using WarmupLR = ClosedFormLR<WarmupLROptions>;

// One schedule after the other:
//   SequentialLR(optimizer, {make_schedule(LinearLROptions{}),
//                            make_schedule(CosineAnnealingLROptions{100})}, {5});
class SequentialLR : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<Schedule> schedules,
               std::vector<std::int64_t> milestones,
               OnForeignChange on_foreign_change = OnForeignChange::kKeep)
      : LRScheduler(optimizer, {sequential_schedule(std::move(schedules), std::move(milestones))},
                    on_foreign_change) {}
};

// base rate * lr_lambda(step), for all groups or a function for each. PyTorch's forgets a plateau
// cut at its next step; here that is OnForeignChange::kOverwrite.
class LambdaLR : public LRScheduler {
 public:
  using Lambda = std::function<double(std::int64_t step)>;

  LambdaLR(Optimizer& optimizer, Lambda lr_lambda,
           OnForeignChange on_foreign_change = OnForeignChange::kKeep)
      : LambdaLR(optimizer, std::vector<Lambda>{std::move(lr_lambda)}, on_foreign_change) {}
  LambdaLR(Optimizer& optimizer, const std::vector<Lambda>& lr_lambdas,
           OnForeignChange on_foreign_change = OnForeignChange::kKeep)
      : LRScheduler(optimizer, schedules_of(lr_lambdas), on_foreign_change) {}

 private:
  static std::vector<Schedule> schedules_of(const std::vector<Lambda>& lambdas) {
    std::vector<Schedule> schedules;
    for (const Lambda& lambda : lambdas)
      schedules.emplace_back([lambda](double step, double base_lr) {
        return base_lr * lambda(static_cast<std::int64_t>(step));
      });
    return schedules;
  }
};

}  // namespace lockstep::optim
