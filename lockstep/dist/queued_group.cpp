#include "lockstep/dist/queued_group.h"

#include "lockstep/core/check.h"

namespace lockstep::dist {

QueuedGroup::Lane& QueuedGroup::lane(CollectiveKind kind) {
  if (kind == CollectiveKind::kSend) return send_lane_;
  if (kind == CollectiveKind::kRecv) return recv_lane_;
  return collective_lane_;
}

void QueuedGroup::rethrow_failure() const {
  if (!failed_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex_);
  std::rethrow_exception(failure_);
}

void QueuedGroup::fail(std::exception_ptr error, const std::string& reason) noexcept {
  {
    std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = std::move(error);
  }
  failed_.store(true, std::memory_order_release);
  abort_peers(reason);
}

void QueuedGroup::run(Lane& lane, const Collective& collective) {
  rethrow_failure();
  try {
    execute(collective, ++lane.sequence);
  } catch (const std::exception& error) {
    fail(std::current_exception(), error.what());
    throw;
  }
  if (collective.kind == CollectiveKind::kSend || collective.kind == CollectiveKind::kRecv) return;
  collectives_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(collective.input.bytes(), std::memory_order_relaxed);
}

void QueuedGroup::check(const Collective& collective) const {
  check_collective(collective, rank(), size());
  for (const Device device : {collective.input.device, collective.output.device})
    LOCKSTEP_CHECK(device.is_cpu(),
                   "{}: the {} group works on memory of the CPU but got some of {}; the nccl "
                   "group works on CUDA devices",
                   describe(collective), kind(), device.str());
}

std::shared_ptr<Work> QueuedGroup::enqueue(const Collective& collective) {
  check(collective);
  auto work = std::make_shared<Work>(describe(collective), timeout());
  Lane& where = lane(collective.kind);
  unfinished_.fetch_add(1, std::memory_order_relaxed);
  where.queue.push([this, &where, work, collective] {
    work->mark_started();
    std::exception_ptr error;
    try {
      run(where, collective);
    } catch (...) {
      error = std::current_exception();
    }
    // First: who has waited for all works may destroy the group at once.
    unfinished_.fetch_sub(1, std::memory_order_release);
    work->mark_done(std::move(error));
  });
  return work;
}

std::shared_ptr<Work> QueuedGroup::all_reduce(ConstSpan input, Span output, ReduceOp op, Tag tag) {
  return enqueue({CollectiveKind::kAllReduce, op, 0, tag, input, output});
}

std::shared_ptr<Work> QueuedGroup::broadcast(Span buffer, int root, Tag tag) {
  ConstSpan input;
  if (root == rank()) input = buffer;
  return enqueue({CollectiveKind::kBroadcast, ReduceOp::kSum, root, tag, input, buffer});
}

std::shared_ptr<Work> QueuedGroup::all_gather(ConstSpan input, Span output, Tag tag) {
  return enqueue({CollectiveKind::kAllGather, ReduceOp::kSum, 0, tag, input, output});
}

std::shared_ptr<Work> QueuedGroup::reduce_scatter(ConstSpan input, Span output, ReduceOp op,
                                                  Tag tag) {
  return enqueue({CollectiveKind::kReduceScatter, op, 0, tag, input, output});
}

std::shared_ptr<Work> QueuedGroup::barrier(Tag tag) {
  return enqueue({CollectiveKind::kBarrier, ReduceOp::kSum, 0, tag, {}, {}});
}

std::shared_ptr<Work> QueuedGroup::send(ConstSpan buffer, int peer, Tag tag) {
  return enqueue({CollectiveKind::kSend, ReduceOp::kSum, peer, tag, buffer, {}});
}

std::shared_ptr<Work> QueuedGroup::recv(Span buffer, int peer, Tag tag) {
  return enqueue({CollectiveKind::kRecv, ReduceOp::kSum, peer, tag, {}, buffer});
}

void QueuedGroup::all_reduce_sync(ConstSpan input, Span output, ReduceOp op, Tag tag) {
  const Collective collective{CollectiveKind::kAllReduce, op, 0, tag, input, output};
  check(collective);
  Lane& where = collective_lane_;
  if (!where.queue.run_here_if_idle([&] { run(where, collective); })) enqueue(collective)->wait();
}

void QueuedGroup::abort(const std::string& reason) noexcept {
  try {
    const std::string text = fmt::format("aborted by rank {}: {}", rank(), reason);
    fail(std::make_exception_ptr(CommError("process group: " + text)), text);
  } catch (...) {
    abort_peers(reason);
  }
}

Traffic QueuedGroup::traffic() const {
  return {collectives_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed)};
}

void QueuedGroup::finish_works() {
  collective_lane_.queue.finish();
  send_lane_.queue.finish();
  recv_lane_.queue.finish();
}

}  // namespace lockstep::dist
