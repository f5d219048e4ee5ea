#include "lockstep/optim/lookahead.h"

#include "lockstep/core/check.h"
#include "lockstep/kernels/lookahead_step.h"

namespace lockstep::optim {
namespace {

std::shared_ptr<Optimizer> checked(std::shared_ptr<Optimizer> inner) {
  LOCKSTEP_CHECK(inner != nullptr, "Lookahead: the inner optimizer is null");
  return inner;
}

std::string slow_key(std::size_t param) { return fmt::format("lookahead.slow.{}", param); }

void check_options(const LookaheadOptions& options) {
  LOCKSTEP_CHECK(options.k >= 1, "Lookahead: k must be at least 1 but is {}", options.k);
  LOCKSTEP_CHECK(options.alpha >= 0 && options.alpha <= 1,
                 "Lookahead: alpha must be in [0, 1] but is {}", options.alpha);
}

}  // namespace

Lookahead::Lookahead(std::shared_ptr<Optimizer> inner, const LookaheadOptions& options)
    : Optimizer(*checked(inner), checked(inner)->defaults().clone()),
      inner_(std::move(inner)),
      options_(options) {
  check_options(options_);
}

void Lookahead::step_scaled(double grad_scale) {
  const bool paper = options_.form == LookaheadForm::kPaper;
  if (paper) start_slow_weights();
  inner_->step_scaled(grad_scale);
  ++counter_;
  if (paper ? counter_ % options_.k == 0 : (counter_ - 1) % options_.k == 0) {
    start_slow_weights();
    synchronise();
  }
}

void Lookahead::start_slow_weights() {
  slow_.resize(param_groups().size());
  std::vector<kernels::LookaheadSegment> fresh;
  for (std::size_t g = 0; g < slow_.size(); ++g) {
    const std::vector<Variable>& params = param_groups()[g].params();
    for (std::size_t i = 0; i < params.size(); ++i) {
      if (slow_[g].started(i)) continue;
      fresh.push_back({params[i].data(), slow_[g].view(params, i)});
      slow_[g].set_started(i);
    }
  }
  if (!fresh.empty()) kernels::lookahead_start(fresh);
}

void Lookahead::synchronise() {
  std::vector<kernels::LookaheadSegment> segments;
  for (std::size_t g = 0; g < slow_.size(); ++g) {
    const std::vector<Variable>& params = param_groups()[g].params();
    for (std::size_t i = 0; i < params.size(); ++i)
      segments.push_back({params[i].data(), slow_[g].view(params, i)});
  }
  kernels::lookahead_step(segments, options_.alpha);
}

StateDict Lookahead::state_dict() const {
  StateDict dict = inner_->state_dict();
  put(dict, "lookahead.counter", counter_);
  put(dict, "lookahead.k", options_.k);
  put(dict, "lookahead.alpha", options_.alpha);
  put(dict, "lookahead.first_sync", options_.form == LookaheadForm::kFirstSync);
  std::size_t first = 0;
  for (std::size_t g = 0; g < param_groups().size(); ++g) {
    const std::size_t count = param_groups()[g].params().size();
    for (std::size_t i = 0; g < slow_.size() && i < count; ++i)
      if (slow_[g].started(i)) dict[slow_key(first + i)] = slow_[g].saved(i);
    first += count;
  }
  return dict;
}

void Lookahead::load_state_dict(const StateDict& dict) {
  const LookaheadOptions options{
      get_integer(dict, "lookahead.k"), get_number(dict, "lookahead.alpha"),
      get_flag(dict, "lookahead.first_sync") ? LookaheadForm::kFirstSync : LookaheadForm::kPaper};
  check_options(options);
  const std::int64_t counter = get_integer(dict, "lookahead.counter");
  LOCKSTEP_CHECK(counter >= 0, "load_state_dict: 'lookahead.counter' is {}", counter);
  std::vector<std::vector<Tensor>> saved;
  std::size_t first = 0;
  for (const OptimizerParamGroup& group : param_groups()) {
    saved.push_back(
        find_saved(dict, group.params(), [&](std::size_t i) { return slow_key(first + i); }));
    first += group.params().size();
  }
  inner_->load_state_dict(dict);
  options_ = options;
  counter_ = counter;
  slow_.resize(saved.size());
  for (std::size_t g = 0; g < saved.size(); ++g)
    slow_[g].load(param_groups()[g].params(), saved[g]);
}

}  // namespace lockstep::optim
