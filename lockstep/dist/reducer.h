// The reducer: watches gradients arrive during backward and sends each bucket on its way as soon as
// it is full, so that communication runs beside the rest of backward. docs/ddp.md follows one
// gradient through it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/dist/bucket.h"
#include "lockstep/dist/bucket_plan.h"
#include "lockstep/dist/comm_hook.h"
#include "lockstep/dist/timeline.h"

namespace lockstep::dist {

struct ReducerOptions {
  BucketCaps caps = {};
  // Looks through the graph of every forward for parameters that will get no gradient.
  bool find_unused_parameters = false;
  CommHook comm_hook = all_reduce_hook;
};

// kIdle      nothing under way; a gradient that arrives now did not come through a DDP forward
// kLocal     the last forward was under no_sync: gradients only add up
// kPrepared  a synchronised forward is through
// kReducing  gradients arrive and full buckets leave; back to kIdle when all are reduced
// Any other step is an Error that names the phase and the parameter.
enum class Phase { kIdle, kLocal, kPrepared, kReducing };

// Parameters are those that require a gradient, in the same order on all ranks. From construction
// on, gradients arrive in the buckets: grad() is a view of one.
class Reducer {
 public:
  Reducer(std::vector<NamedParameter> parameters, std::shared_ptr<ProcessGroup> group,
          ReducerOptions options = {});
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // Before every training forward. Throws Error naming the parameters that got no gradient if the
  // last pass is unfinished, or saying so if an exception ended it. If this forward will be
  // synchronised, rebuilds the buckets, once, when the first reduced backward pass has shown in
  // which order gradients arrive (collective: rank 0's order counts; never with
  // find_unused_parameters).
  void begin_forward(bool synchronise);
  // After a forward, with its results; only their graph is looked at.
  void end_forward(std::span<const Variable> outputs, bool synchronise);
  // While true, gradients only add up.
  void set_local_only(bool value) { local_only_ = value; }

  // Collective: reduces what has added up locally since the last reduction. Does nothing if no rank
  // has anything new.
  void sync_gradients();
  // Collective: this rank has no data left and takes its part in one step of the others with zeros.
  void shadow_step();
  // What gradients are divided by: the group's size unless told otherwise.
  void set_divisor(int ranks) { divisor_ = ranks; }

  Phase phase() const { return phase_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  bool has_rebuilt_buckets() const { return rebuilt_; }
  // Number of reductions so far.
  std::int64_t step() const { return step_; }
  // Of the last reduction.
  const StepTiming& timing() const { return timing_; }
  // For DDP: called as soon as gradients are reduced, before the observer.
  void set_on_finished(std::function<void()> f) { on_finished_ = std::move(f); }
  // Called after every reduction.
  void set_observer(std::function<void(const StepTiming&)> observer) {
    observer_ = std::move(observer);
  }

 private:
  struct Place {
    std::size_t bucket = 0;
    std::size_t member = 0;
  };
  using UseCounts = std::vector<std::int32_t>;

  // One backward pass.
  void on_gradient(std::size_t parameter);
  void start_reducing();
  void mark_ready(std::size_t parameter);
  void launch_full_buckets();
  void after_backward();
  void abandon_failed_pass();
  void wait_for_buckets();
  void finish(const UseCounts* used);

  // A reduction without a backward pass.
  void reduce_as_is();
  UseCounts used_by_any_rank();

  // The buckets themselves (reducer_buckets.cpp).
  void build_buckets(const std::vector<std::size_t>& order);
  void rebuild_if_due();
  const Tensor& view_of(std::size_t parameter) const;
  void adopt_view(std::size_t parameter);

  std::vector<NamedParameter> parameters_;
  std::shared_ptr<ProcessGroup> group_;
  ReducerOptions options_;
  std::vector<std::uint64_t> hooks_;
  std::function<void()> on_finished_;
  std::function<void(const StepTiming&)> observer_;

  std::vector<Bucket> buckets_;
  std::vector<Place> places_;         // of each parameter
  std::vector<std::size_t> arrival_;  // order of gradients in the first reduced pass
  bool rebuilt_ = false;

  Phase phase_ = Phase::kIdle;
  bool local_only_ = false;
  bool finish_is_queued_ = false;
  std::size_t next_bucket_ = 0;
  std::vector<bool> ready_;    // in this pass
  std::vector<bool> touched_;  // got a gradient since the last reduction
  std::vector<bool> unused_;   // no path of this forward's graph leads there
  // Older gradients of parameters that nobody may have touched, to be put back in that case.
  std::vector<std::pair<std::size_t, Tensor>> untouched_;
  int divisor_;
  std::int64_t step_ = 0;
  StepTiming timing_;
};

}  // namespace lockstep::dist
