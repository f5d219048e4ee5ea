#include "lockstep/dist/data_parallel.h"

#include "lockstep/autograd/grad_mode.h"
#include "lockstep/core/check.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/dist/verify_parameters.h"

namespace lockstep::dist {
namespace {

BucketCaps caps_from(const DdpOptions& options) {
  if (!options.bucket_cap_mb) return {};
  LOCKSTEP_CHECK(*options.bucket_cap_mb > 0, "ddp: expected a bucket cap above 0 MiB but got {}",
                 *options.bucket_cap_mb);
  const auto bytes = static_cast<std::size_t>(*options.bucket_cap_mb * 1024 * 1024);
  return {bytes, bytes};
}

// Before anything else is collective, so that a rank with another model, or with none, is named.
const std::vector<NamedParameter>& verified(const std::vector<NamedParameter>& parameters,
                                            ProcessGroup& group, bool init_sync) {
  if (init_sync) verify_parameters(parameters, group);
  return parameters;
}

}  // namespace

DataParallel::DataParallel(const std::vector<NamedParameter>& parameters,
                           std::vector<Tensor> buffers, std::shared_ptr<ProcessGroup> group,
                           const DdpOptions& options)
    : parameters_(verified(parameters, *group, options.init_sync)),
      buffers_(std::move(buffers)),
      group_(std::move(group)),
      broadcast_buffers_(options.broadcast_buffers),
      reducer_(parameters_, group_,
               {caps_from(options), options.find_unused_parameters, options.comm_hook}) {
  reducer_.set_on_finished([this] { take_buffers(); });
  if (!options.init_sync) return;
  broadcast_parameters();
  broadcast_buffers();
  verify_same_values(parameters_, *group_);
}

bool DataParallel::synchronises(bool training) const {
  return training && is_grad_enabled() && no_sync_depth_ == 0;
}

void DataParallel::begin_forward(bool training) {
  take_buffers();
  if (!training || !is_grad_enabled()) return;
  if (joining_ && synchronises(training)) {
    const int active = count_active(true);
    reducer_.set_divisor(divide_by_initial_ ? group_->size() : active);
    ++steps_joined_;
  }
  reducer_.begin_forward(synchronises(training));
}

void DataParallel::take_buffers() {
  if (!buffers_on_the_way_) return;
  const std::unique_ptr<CoalescedBroadcast> arriving = std::move(buffers_on_the_way_);
  arriving->wait();
}

void DataParallel::end_forward(std::span<const Variable> outputs, bool training) {
  if (!training || !is_grad_enabled()) return;
  const bool synchronise = synchronises(training);
  reducer_.end_forward(outputs, synchronise);
  if (synchronise && broadcast_buffers_ && !joining_ && !buffers_.empty())
    buffers_on_the_way_ = std::make_unique<CoalescedBroadcast>(buffers_, 0, *group_);
}

DataParallel::NoSync::NoSync(DataParallel& owner) : owner_(owner) {
  owner_.reducer_.set_local_only(++owner_.no_sync_depth_ > 0);
}

DataParallel::NoSync::~NoSync() { owner_.reducer_.set_local_only(--owner_.no_sync_depth_ > 0); }

std::vector<Tensor> DataParallel::parameter_values() const {
  std::vector<Tensor> values;
  for (const NamedParameter& p : parameters_) values.push_back(p.variable.data());
  return values;
}

void DataParallel::broadcast_parameters(int root) {
  CoalescedBroadcast(parameter_values(), root, *group_).wait();
}

void DataParallel::broadcast_buffers(int root) {
  if (!buffers_.empty()) CoalescedBroadcast(buffers_, root, *group_).wait();
}

int DataParallel::count_active(bool active) {
  std::int64_t count = active ? 1 : 0;
  group_->all_reduce_sync(span_of(&count, 1));
  return static_cast<int>(count);
}

void DataParallel::begin_join(bool divide_by_initial_world_size) {
  LOCKSTEP_CHECK(!joining_, "join: already begun");
  joining_ = true;
  divide_by_initial_ = divide_by_initial_world_size;
  steps_joined_ = 0;
}

void DataParallel::finish_join() {
  LOCKSTEP_CHECK(joining_, "join: finish without begin");
  for (int active = count_active(false); active > 0; active = count_active(false)) {
    reducer_.set_divisor(divide_by_initial_ ? group_->size() : active);
    reducer_.shadow_step();
  }
  joining_ = false;
  reducer_.set_divisor(group_->size());
  // Steps of one's own, then rank: the largest pair went on longest.
  std::int64_t last = steps_joined_ * group_->size() + group_->rank();
  group_->all_reduce_sync(span_of(&last, 1), ReduceOp::kMax);
  const int root = static_cast<int>(last % group_->size());
  broadcast_parameters(root);
  broadcast_buffers(root);
}

}  // namespace lockstep::dist
