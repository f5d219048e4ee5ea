// QueuedGroup: a process group whose collectives are carried out one after the other on a thread of
// the group. A transport writes execute(); the queue, works, errors and counters are here.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>

#include "lockstep/dist/collective.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/dist/work_queue.h"

namespace lockstep::dist {

class QueuedGroup : public ProcessGroup {
 public:
  using ProcessGroup::all_reduce;
  std::shared_ptr<Work> all_reduce(ConstSpan input, Span output, ReduceOp op, Tag tag) override;
  std::shared_ptr<Work> broadcast(Span buffer, int root, Tag tag) override;
  std::shared_ptr<Work> all_gather(ConstSpan input, Span output, Tag tag) override;
  std::shared_ptr<Work> reduce_scatter(ConstSpan input, Span output, ReduceOp op, Tag tag) override;
  std::shared_ptr<Work> barrier(Tag tag) override;
  std::shared_ptr<Work> send(ConstSpan buffer, int peer, Tag tag) override;
  std::shared_ptr<Work> recv(Span buffer, int peer, Tag tag) override;
  using ProcessGroup::all_reduce_sync;
  void all_reduce_sync(ConstSpan input, Span output, ReduceOp op, Tag tag) override;
  void abort(const std::string& reason) noexcept override;
  Traffic traffic() const override;

 protected:
  QueuedGroup(int rank, int size, std::chrono::nanoseconds timeout)
      : ProcessGroup(rank, size, timeout) {}

  // Carries out one collective of this rank within timeout(); throws CommError or TimeoutError.
  // Called from one thread at a time, in order, except that a send, a receive and another
  // collective may run at once. `sequence` counts the collectives of each of the three from 1.
  virtual void execute(const Collective& collective, std::uint64_t sequence) = 0;
  // Tells the peers that this rank has failed and makes a running execute() throw. Called once,
  // from any thread.
  virtual void abort_peers(const std::string& reason) noexcept = 0;

  // The destructors of transports call this first: after it, execute() is not called any more.
  // Works still queued are carried out.
  void finish_works();
  // Works handed in that are not done.
  std::int64_t unfinished_works() const { return unfinished_.load(std::memory_order_acquire); }

 private:
  struct Lane {
    WorkQueue queue;
    std::uint64_t sequence = 0;
  };

  Lane& lane(CollectiveKind kind);
  void check(const Collective& collective) const;
  std::shared_ptr<Work> enqueue(const Collective& collective);
  void run(Lane& lane, const Collective& collective);
  void fail(std::exception_ptr error, const std::string& reason) noexcept;
  void rethrow_failure() const;

  mutable std::mutex mutex_;
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> collectives_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::int64_t> unfinished_{0};
  Lane collective_lane_, send_lane_, recv_lane_;
};

}  // namespace lockstep::dist
