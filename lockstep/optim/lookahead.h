// Lookahead: slow weights that follow any optimizer's fast ones (Zhang et al. 2019).
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/optim/optimizer.h"

namespace lockstep::optim {

// When slow and fast weights meet.
enum class LookaheadForm {
  // The paper's: slow weights start as the weights before the first step and meet the fast ones
  // after steps k, 2k, ….
  kPaper,
  // That of the reference implementation (alphadl): slow weights start as the weights after the
  // first step and meet the fast ones after steps 1 (without effect), 1+k, 1+2k, ….
  kFirstSync,
};

struct LookaheadOptions {
  std::int64_t k = 5;
  double alpha = 0.5;
  LookaheadForm form = LookaheadForm::kPaper;
};

// slow = slow + alpha * (fast - slow), fast = slow, after every k steps of the inner optimizer.
// Shares the inner optimizer's groups: a scheduler, a scaler or add_param_group may act on either.
// A step that is skipped (step() not called) does not count.
class Lookahead final : public Optimizer {
 public:
  // Throws Error unless k >= 1 and 0 <= alpha <= 1.
  explicit Lookahead(std::shared_ptr<Optimizer> inner, const LookaheadOptions& options = {});

  Optimizer& inner() { return *inner_; }
  const LookaheadOptions& lookahead_options() const { return options_; }
  // Inner steps taken so far.
  std::int64_t counter() const { return counter_; }

  void step_scaled(double grad_scale) override;

  // The inner optimizer's keys and lookahead.{counter, k, alpha, first_sync, slow.<p>}.
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& dict) override;

 protected:
  std::vector<std::string> state_kinds() const override { return {}; }

 private:
  // Slow weights of all parameters that have none yet start as the fast ones.
  void start_slow_weights();
  void synchronise();

  std::shared_ptr<Optimizer> inner_;
  LookaheadOptions options_;
  std::int64_t counter_ = 0;
  std::vector<FlatState> slow_;  // per group
};

}  // namespace lockstep::optim
