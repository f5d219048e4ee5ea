#include "lockstep/dist/reducer.h"

#include <algorithm>

#include "lockstep/autograd/engine.h"
#include "lockstep/autograd/reachable.h"
#include "lockstep/core/check.h"
#include "lockstep/core/current_stream.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/kernels/scale.h"

namespace lockstep::dist {
namespace {

std::vector<Variable> variables_of(const std::vector<NamedParameter>& parameters) {
  std::vector<Variable> variables;
  variables.reserve(parameters.size());
  for (const NamedParameter& p : parameters) variables.push_back(p.variable);
  return variables;
}

// "B.weight (2), B.bias (3)"
std::string name_missing(const std::vector<NamedParameter>& parameters,
                         const std::vector<bool>& ready) {
  std::string names;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (!ready[i])
      names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", parameters[i].name, i);
  return names;
}

}  // namespace

Reducer::Reducer(std::vector<NamedParameter> parameters, std::shared_ptr<ProcessGroup> group,
                 ReducerOptions options)
    : parameters_(std::move(parameters)),
      group_(std::move(group)),
      options_(std::move(options)),
      ready_(parameters_.size(), false),
      touched_(parameters_.size(), false),
      unused_(parameters_.size(), false),
      divisor_(group_->size()) {
  LOCKSTEP_CHECK(!parameters_.empty(), "ddp: no parameter of the module requires a gradient");
  build_buckets(reverse_order(parameters_.size()));
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    hooks_.push_back(parameters_[i].variable.register_post_accumulate_grad_hook(
        [this, i](Variable&) { on_gradient(i); }));
}

Reducer::~Reducer() {
  for (std::size_t i = 0; i < hooks_.size(); ++i) {
    parameters_[i].variable.remove_hook(hooks_[i]);
    parameters_[i].variable.set_grad_buffer({});
  }
  for (Bucket& bucket : buckets_) {
    if (!bucket.work) continue;
    try {
      bucket.work->wait();  // it may still write to the bucket's memory
    } catch (...) {
      // Whoever waits for this pass has been told; a destructor has nobody to tell.
    }
  }
}

void Reducer::begin_forward(bool synchronise) {
  abandon_failed_pass();
  LOCKSTEP_CHECK(
      phase_ != Phase::kReducing,
      "ddp: the reduction of step {} is unfinished, so a new one can't start: no gradient came for "
      "parameter {}. Every parameter must take part in the loss, or DDP must be made with "
      "find_unused_parameters = true",
      step_, name_missing(parameters_, ready_));
  if (synchronise) rebuild_if_due();
}

void Reducer::end_forward(std::span<const Variable> outputs, bool synchronise) {
  phase_ = synchronise ? Phase::kPrepared : Phase::kLocal;
  if (!synchronise || !options_.find_unused_parameters) return;
  unused_ = reachable(outputs, variables_of(parameters_));
  unused_.flip();
}

// A gradient has been added to the parameter's grad(): the first of the calls from a gradient to
// the wire.
void Reducer::on_gradient(std::size_t parameter) {
  LOCKSTEP_CHECK(
      phase_ != Phase::kIdle || local_only_,
      "ddp: parameter {} ('{}') got a gradient in phase idle, that is, not from a training forward "
      "through DDP or for a second time from the same one. Call forward through DDP, with the "
      "module in training mode, for every backward, or accumulate under no_sync()",
      parameter, parameters_[parameter].name);
  touched_[parameter] = true;
  adopt_view(parameter);
  if (local_only_ || phase_ == Phase::kLocal) return;
  if (phase_ == Phase::kPrepared) start_reducing();
  if (!finish_is_queued_) {
    finish_is_queued_ = true;
    run_after_backward([this] { after_backward(); });
  }
  mark_ready(parameter);
  launch_full_buckets();
}

void Reducer::after_backward() {
  finish_is_queued_ = false;
  if (next_bucket_ < buckets_.size()) return;  // another backward of the same forward may follow
  wait_for_buckets();
  if (!options_.find_unused_parameters) return finish(nullptr);
  const UseCounts used = used_by_any_rank();
  finish(&used);
}

// A backward pass that threw never came to after_backward(). Alone, a rank can start anew; among
// others nobody knows how far they came.
void Reducer::abandon_failed_pass() {
  if (!finish_is_queued_) return;
  LOCKSTEP_CHECK(
      group_->size() == 1,
      "ddp: the backward pass of step {} was ended by an exception, and the ranks may have "
      "parted; make a new process group and wrap the module anew",
      step_);
  finish_is_queued_ = false;
  for (Bucket& bucket : buckets_) {
    if (bucket.work) bucket.work->wait();
    bucket.work.reset();
  }
  phase_ = Phase::kIdle;
}

void Reducer::start_reducing() {
  phase_ = Phase::kReducing;
  next_bucket_ = 0;
  ready_.assign(parameters_.size(), false);
  untouched_.clear();
  finish_is_queued_ = false;
  timing_ = {};
  timing_.step = step_;
  timing_.first_gradient = timing_.last_gradient = steady_now_ns();
  for (Bucket& bucket : buckets_) {
    bucket.pending = bucket.members().size();
    bucket.timing = {};
    bucket.timing.bucket = bucket.index();
    bucket.timing.bytes = bucket.flat().nbytes();
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (unused_[i]) mark_ready(i);
}

void Reducer::mark_ready(std::size_t parameter) {
  LOCKSTEP_CHECK(!ready_[parameter],
                 "ddp: parameter {} ('{}') got a gradient twice in one reduction (phase reducing): "
                 "run all its uses in one backward, or the first ones under no_sync()",
                 parameter, parameters_[parameter].name);
  ready_[parameter] = true;
  if (!rebuilt_) arrival_.push_back(parameter);
  const Tensor& grad = parameters_[parameter].variable.grad();
  if (!grad.defined()) {
    zero_(view_of(parameter));  // what an earlier pass left there is not part of the sum
  } else {
    if (!touched_[parameter]) untouched_.emplace_back(parameter, grad.clone());
    adopt_view(parameter);  // it may have been set since
  }
  timing_.last_gradient = steady_now_ns();
  Bucket& bucket = buckets_[places_[parameter].bucket];
  if (--bucket.pending == 0) bucket.timing.ready = timing_.last_gradient;
}

// Strictly in index order, whatever the order of arrival: all ranks run the same collectives in the
// same order.
void Reducer::launch_full_buckets() {
  for (; next_bucket_ < buckets_.size() && buckets_[next_bucket_].pending == 0; ++next_bucket_) {
    Bucket& bucket = buckets_[next_bucket_];
    kernels::scale_(bucket.flat(), 1.0 / divisor_);
    bucket.timing.launch = steady_now_ns();
    bucket.work = options_.comm_hook(*group_, {bucket.index(), static_cast<int>(buckets_.size()),
                                               bucket.flat(), Tag{step_, bucket.index()}});
  }
}

void Reducer::wait_for_buckets() {
  const Device device = buckets_.front().flat().device();
  if (device.is_cuda()) timing_.device_wait = {current_stream(device).record(), {}};
  for (Bucket& bucket : buckets_) {
    bucket.work->wait();
    const WorkTimes times = bucket.work->times();
    bucket.timing.start = times.start;
    bucket.timing.end = times.end;
    bucket.work.reset();
    timing_.buckets.push_back(bucket.timing);
  }
  if (device.is_cuda()) timing_.device_wait->end = current_stream(device).record();
  timing_.finished = steady_now_ns();
}

// Gradients become visible. Parameters that no rank has used keep the gradient they had, or none.
void Reducer::finish(const UseCounts* used) {
  for (const auto& [parameter, value] : untouched_)
    if (used && !(*used)[parameter]) copy_elements(view_of(parameter), value);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (!used || (*used)[i]) parameters_[i].variable.set_grad(view_of(i));
  untouched_.clear();
  touched_.assign(parameters_.size(), false);
  phase_ = Phase::kIdle;
  ++step_;
  if (on_finished_) on_finished_();
  if (observer_) observer_(timing_);
}

Reducer::UseCounts Reducer::used_by_any_rank() {
  UseCounts used(touched_.begin(), touched_.end());
  group_->all_reduce_sync(span_of(used), ReduceOp::kMax, Tag{step_, -1});
  return used;
}

// Every parameter counts as ready with what it has.
void Reducer::reduce_as_is() {
  const std::vector<std::size_t> arrival = arrival_;
  unused_.assign(parameters_.size(), true);
  start_reducing();
  unused_.assign(parameters_.size(), false);
  arrival_ = arrival;
  launch_full_buckets();
  wait_for_buckets();
}

void Reducer::sync_gradients() {
  LOCKSTEP_CHECK(phase_ != Phase::kReducing,
                 "sync_gradients: the reduction of step {} is unfinished: no gradient came for "
                 "parameter {}",
                 step_, name_missing(parameters_, ready_));
  const UseCounts used = used_by_any_rank();
  if (std::none_of(used.begin(), used.end(), [](std::int32_t u) { return u != 0; })) return;
  reduce_as_is();
  finish(&used);
}

void Reducer::shadow_step() {
  rebuild_if_due();
  for (NamedParameter& p : parameters_) p.variable.set_grad({});
  touched_.assign(parameters_.size(), false);
  reduce_as_is();
  if (!options_.find_unused_parameters) return finish(nullptr);
  const UseCounts used = used_by_any_rank();
  finish(&used);
}

}  // namespace lockstep::dist
