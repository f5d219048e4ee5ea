#include "lockstep/dist/nccl_group.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "lockstep/core/check.h"
#include "lockstep/core/current_stream.h"
#include "lockstep/core/quiet_thread.h"
#include "lockstep/dist/collective.h"
#include "lockstep/dist/nccl_communicator.h"
#include "lockstep/dist/store.h"

namespace lockstep::dist {
namespace {

using Clock = std::chrono::steady_clock;

// The first error of the group; its works outlive it and ask here.
class Failure {
 public:
  void set(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  std::exception_ptr get() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  void rethrow() const {
    if (const std::exception_ptr error = get()) std::rethrow_exception(error);
  }

 private:
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

class DeviceWork final : public Work {
 public:
  DeviceWork(std::string description, std::chrono::nanoseconds timeout, Device device, Event end,
             std::shared_ptr<const Failure> failure)
      : Work(std::move(description), timeout),
        device_(device),
        end_(std::move(end)),
        failure_(std::move(failure)) {}

  bool done() const override { return failure_->get() || end_.query(); }
  void wait() override {
    failure_->rethrow();
    current_stream(device_).wait(end_);
  }
  std::exception_ptr error() const override { return failure_->get(); }

 private:
  const Device device_;
  const Event end_;
  const std::shared_ptr<const Failure> failure_;
};

ncclRedOp_t nccl_op(ReduceOp op, DType dtype) {
  if (dtype == kBool)  // "or" and "and" of bytes that are 0 or 1
    return op == ReduceOp::kSum || op == ReduceOp::kMax ? ncclMax : ncclMin;
  switch (op) {
    case ReduceOp::kSum:
      return ncclSum;
    case ReduceOp::kProduct:
      return ncclProd;
    case ReduceOp::kMin:
      return ncclMin;
    case ReduceOp::kMax:
      return ncclMax;
  }
  return ncclSum;
}

class NcclGroup final : public ProcessGroup {
 public:
  NcclGroup(std::shared_ptr<ProcessGroup> host, const ncclUniqueId& id, Device device)
      : ProcessGroup(host->rank(), host->size(), host->timeout()),
        host_(std::move(host)),
        device_(device),
        communicator_(id, rank(), size(), device, timeout()),
        stream_(Stream::create(device, StreamPriority::kHigh)),
        watch_(start_quiet_thread([this] { watch(); })) {}

  ~NcclGroup() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;  // the watch ends with the last work, in the timeout at the latest
    }
    changed_.notify_all();
    watch_.join();
  }

  std::string_view kind() const override { return "nccl"; }
  std::shared_ptr<Storage> allocate(std::size_t bytes) override { return host_->allocate(bytes); }

  using ProcessGroup::all_reduce;
  std::shared_ptr<Work> all_reduce(ConstSpan input, Span output, ReduceOp op, Tag tag) override {
    const Collective c{CollectiveKind::kAllReduce, op, 0, tag, input, output};
    if (is_on_host(c)) return host_->all_reduce(input, output, op, tag);
    return launch(c, [=](ncclComm_t comm, cudaStream_t stream) {
      return ncclAllReduce(input.data, output.data, elements(input), nccl_type(input.dtype),
                           nccl_op(op, input.dtype), comm, stream);
    });
  }
  std::shared_ptr<Work> broadcast(Span buffer, int root, Tag tag) override {
    const Collective c{CollectiveKind::kBroadcast,
                       ReduceOp::kSum,
                       root,
                       tag,
                       root == rank() ? ConstSpan(buffer) : ConstSpan(),
                       buffer};
    if (buffer.device.is_cpu()) return host_->broadcast(buffer, root, tag);
    return launch(c, [=](ncclComm_t comm, cudaStream_t stream) {
      return ncclBroadcast(buffer.data, buffer.data, elements(buffer), nccl_type(buffer.dtype),
                           root, comm, stream);
    });
  }
  std::shared_ptr<Work> all_gather(ConstSpan input, Span output, Tag tag) override {
    const Collective c{CollectiveKind::kAllGather, ReduceOp::kSum, 0, tag, input, output};
    if (is_on_host(c)) return host_->all_gather(input, output, tag);
    return launch(c, [=](ncclComm_t comm, cudaStream_t stream) {
      return ncclAllGather(input.data, output.data, elements(input), nccl_type(input.dtype), comm,
                           stream);
    });
  }
  std::shared_ptr<Work> reduce_scatter(ConstSpan input, Span output, ReduceOp op,
                                       Tag tag) override {
    const Collective c{CollectiveKind::kReduceScatter, op, 0, tag, input, output};
    if (is_on_host(c)) return host_->reduce_scatter(input, output, op, tag);
    return launch(c, [=](ncclComm_t comm, cudaStream_t stream) {
      return ncclReduceScatter(input.data, output.data, elements(output), nccl_type(input.dtype),
                               nccl_op(op, input.dtype), comm, stream);
    });
  }
  // Of the hosts: what their devices have still to do is not waited for.
  std::shared_ptr<Work> barrier(Tag tag) override { return host_->barrier(tag); }

  std::shared_ptr<Work> send(ConstSpan buffer, int peer, Tag tag) override {
    const Collective c{CollectiveKind::kSend, ReduceOp::kSum, peer, tag, buffer, {}};
    if (buffer.device.is_cpu()) return host_->send(buffer, peer, tag);
    return launch(c, [=](ncclComm_t comm, cudaStream_t stream) {
      return ncclSend(buffer.data, elements(buffer), nccl_type(buffer.dtype), peer, comm, stream);
    });
  }
  std::shared_ptr<Work> recv(Span buffer, int peer, Tag tag) override {
    const Collective c{CollectiveKind::kRecv, ReduceOp::kSum, peer, tag, {}, buffer};
    if (buffer.device.is_cpu()) return host_->recv(buffer, peer, tag);
    return launch(c, [=](ncclComm_t comm, cudaStream_t stream) {
      return ncclRecv(buffer.data, elements(buffer), nccl_type(buffer.dtype), peer, comm, stream);
    });
  }
  using ProcessGroup::all_reduce_sync;
  void all_reduce_sync(ConstSpan input, Span output, ReduceOp op, Tag tag) override {
    if (input.device.is_cpu() && output.device.is_cpu())
      return host_->all_reduce_sync(input, output, op, tag);
    all_reduce(input, output, op, tag)->wait();
  }

  void abort(const std::string& reason) noexcept override {
    host_->abort(reason);
    try {
      fail(CommError(fmt::format("process group: aborted by rank {}: {}", rank(), reason)));
    } catch (...) {
      communicator_.end_now();
    }
  }

  // The host's and the device's.
  Traffic traffic() const override {
    Traffic all = host_->traffic();
    all.collectives += collectives_.load(std::memory_order_relaxed);
    all.bytes += bytes_.load(std::memory_order_relaxed);
    return all;
  }

 private:
  struct Pending {
    std::string description;
    Event end;
    Clock::time_point deadline;
  };

  static std::size_t elements(const ConstSpan& span) {
    return static_cast<std::size_t>(span.count);
  }

  bool is_on_host(const Collective& c) const {
    LOCKSTEP_CHECK(c.input.device == c.output.device, "{}: the input is on {}, the output on {}",
                   describe(c), c.input.device.str(), c.output.device.str());
    return c.input.device.is_cpu();
  }

  // On the group's stream, behind what the current stream has by now.
  template <class Operation>
  std::shared_ptr<Work> launch(const Collective& c, const Operation& operation) {
    check_collective(c, rank(), size());
    const std::string description = describe(c);
    const Device device = c.kind == CollectiveKind::kSend ? c.input.device : c.output.device;
    LOCKSTEP_CHECK(device == device_, "{}: this rank's group is on {} but got memory of {}",
                   description, device_.str(), device.str());
    failure_->rethrow();
    const std::lock_guard order(launch_mutex_);
    stream_.wait(current_stream(device_).record());
    try {
      communicator_.run(description, [&](ncclComm_t communicator) {
        return operation(communicator, stream_.native());
      });
    } catch (const CommError& error) {
      fail(error);
      throw;
    }
    const Event end = stream_.record();
    if (c.kind != CollectiveKind::kSend && c.kind != CollectiveKind::kRecv) {
      collectives_.fetch_add(1, std::memory_order_relaxed);
      bytes_.fetch_add(c.input.bytes(), std::memory_order_relaxed);
    }
    {
      const std::lock_guard lock(mutex_);
      pending_.push_back({description, end, Clock::now() + timeout()});
    }
    changed_.notify_all();
    return std::make_shared<DeviceWork>(description, timeout(), device_, end, failure_);
  }

  template <class E>
  void fail(const E& error) {
    failure_->set(std::make_exception_ptr(error));
    communicator_.end_now();
  }

  // Nobody on the host waits for a work: this thread sees to it that none takes for ever.
  void watch() {
    constexpr std::chrono::milliseconds kPause(2);
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return ending_ || !pending_.empty(); });
      while (!pending_.empty() && !failure_->get()) {
        const Pending first = pending_.front();  // works end in order
        lock.unlock();
        const bool done = is_over(first);
        lock.lock();
        if (done)
          pending_.pop_front();
        else
          changed_.wait_for(lock, kPause);
      }
      pending_.clear();
      if (ending_) return;
    }
  }

  bool is_over(const Pending& work) {
    try {
      if (work.end.query()) return true;
      const std::string error = communicator_.asynchronous_error();
      if (!error.empty()) {
        fail(CommError(fmt::format("{}: NCCL says {}", work.description, error)));
      } else if (Clock::now() > work.deadline) {
        fail(TimeoutError(
            fmt::format("{}: rank {} waited {:g} s for the others on {}", work.description, rank(),
                        std::chrono::duration<double>(timeout()).count(), device_.str())));
        host_->abort(fmt::format("{} timed out", work.description));
      }
    } catch (const std::exception& error) {
      fail(CommError(fmt::format("{}: {}", work.description, error.what())));
    }
    return false;
  }

  const std::shared_ptr<ProcessGroup> host_;
  const Device device_;
  NcclCommunicator communicator_;
  Stream stream_;
  const std::shared_ptr<Failure> failure_ = std::make_shared<Failure>();
  std::atomic<std::uint64_t> collectives_{0}, bytes_{0};
  std::mutex launch_mutex_;  // the order of calls is that of the stream's work
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Pending> pending_;
  bool ending_ = false;
  std::thread watch_;
};

// Rank 0 makes the id and hands it to the others.
ncclUniqueId agree_on_id(Store& store, int rank, const ProcessGroupOptions& options) {
  const std::string key = options.name + "/nccl_id";
  ncclUniqueId id;
  if (rank == 0) {
    const ncclResult_t result = ncclGetUniqueId(&id);
    LOCKSTEP_CHECK_AS(CommError, result == ncclSuccess, "nccl: no id for a communicator: {}",
                      ncclGetErrorString(result));
    store.set(key, std::string(id.internal, sizeof id.internal));
    return id;
  }
  const std::string bytes =
      store.get(key, std::chrono::ceil<std::chrono::milliseconds>(options.timeout));
  LOCKSTEP_CHECK_AS(CommError, bytes.size() == sizeof id.internal,
                    "nccl: the store holds {} bytes under {}, wanted an id of {}", bytes.size(),
                    key, sizeof id.internal);
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

}  // namespace

std::shared_ptr<ProcessGroup> make_nccl_group(std::shared_ptr<Store> store, int rank, int size,
                                              const ProcessGroupOptions& options) {
  LOCKSTEP_CHECK(options.device.is_cuda(),
                 "make_process_group: nccl wants a CUDA device for each rank but got {}",
                 options.device.str());
  require_device(options.device, "make_process_group");
  auto host = make_process_group(options.host_kind, store, rank, size, options);
  try {
    return std::make_shared<NcclGroup>(host, agree_on_id(*store, rank, options), options.device);
  } catch (const std::exception& error) {
    host->abort(error.what());
    throw;
  }
}

}  // namespace lockstep::dist
