// ProcessGroup: the ranks of a job and the collectives among them. One interface for all
// transports: `local` (ranks are threads), `shm` (processes of one host), `nccl` (CUDA devices).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/core/storage.h"
#include "lockstep/dist/span.h"
#include "lockstep/dist/work.h"

namespace lockstep::dist {

class Store;

// Averaging is no reduction here: it happens in one place only, the reducer.
// Integers wrap around (two's complement, u8 modulo 256); bool counts as "or" for kSum and kMax,
// "and" for kProduct and kMin. kMax and kMin give NaN where any input is NaN.
enum class ReduceOp : std::uint8_t { kSum, kProduct, kMin, kMax };

std::string_view reduce_op_name(ReduceOp op);  // "sum", "product", "min", "max"

// What a group has done since it was made.
struct Traffic {
  std::uint64_t collectives = 0;  // finished well, barriers included, send and recv not
  std::uint64_t bytes = 0;        // payload bytes that this rank handed in (its inputs)
};

// All ranks call the same collectives in the same order, each with the same count, dtype, op, root
// and tag: the ranks compare these for every collective, and a difference is a CommError on every
// rank that names both. Works run in the order of the calls, on a thread of the group; the caller
// may wait for them in any order. The memory handed in stays the caller's: it has to live until the
// work is done or the group destroyed, also where an exception unwinds the caller.
//
// Reductions sum each element over the ranks in one fixed tree, ((g0+g1)+(g2+g3))+… (see
// reduction_tree.h), half types in f32 with one rounding at the end: the same bits on all ranks and
// for every transport, chunk and buffer.
//
// After an error the group is unusable: all its works fail with that error, also those of peers,
// and a new group has to be made. Methods are thread-safe; the order of calls from several threads
// is the caller's matter.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  virtual std::string_view kind() const = 0;  // "local", "shm", …
  int rank() const { return rank_; }
  int size() const { return size_; }
  // How long any one collective may take, from its start, before it is a TimeoutError.
  std::chrono::nanoseconds timeout() const { return timeout_; }

  // Memory that peers reduce straight out of, without a copy: zero-filled, 64-byte aligned, freed
  // with the last reference, also after the group. Not collective. Other memory works everywhere
  // too, only slower.
  virtual std::shared_ptr<Storage> allocate(std::size_t bytes);
  // allocate() as a contiguous tensor of zeros.
  Tensor allocate_tensor(const Shape& shape, DType dtype = DType::kF32);

  // output = the reduction of all ranks' inputs. The two may be the same memory but must not
  // overlap otherwise.
  virtual std::shared_ptr<Work> all_reduce(ConstSpan input, Span output,
                                           ReduceOp op = ReduceOp::kSum, Tag tag = {}) = 0;
  std::shared_ptr<Work> all_reduce(Span buffer, ReduceOp op = ReduceOp::kSum, Tag tag = {}) {
    return all_reduce(buffer, buffer, op, tag);
  }
  // Everyone's buffer = root's.
  virtual std::shared_ptr<Work> broadcast(Span buffer, int root, Tag tag = {}) = 0;
  // output (size() * input.count elements) = the inputs in the order of the ranks.
  virtual std::shared_ptr<Work> all_gather(ConstSpan input, Span output, Tag tag = {}) = 0;
  // output = block rank() of the reduction; input has size() * output.count elements.
  virtual std::shared_ptr<Work> reduce_scatter(ConstSpan input, Span output,
                                               ReduceOp op = ReduceOp::kSum, Tag tag = {}) = 0;
  // Done once every rank has called it; the error of a barrier names the ranks that have not.
  virtual std::shared_ptr<Work> barrier(Tag tag = {}) = 0;

  // One message from this rank to `peer`, matched by order; count and dtype must agree. Sends and
  // receives each have a queue of their own beside that of the collectives.
  virtual std::shared_ptr<Work> send(ConstSpan buffer, int peer, Tag tag = {}) = 0;
  virtual std::shared_ptr<Work> recv(Span buffer, int peer, Tag tag = {}) = 0;

  // As all_reduce(...)->wait(), but on the caller's thread where nothing is queued: the quick way
  // for small messages.
  virtual void all_reduce_sync(ConstSpan input, Span output, ReduceOp op = ReduceOp::kSum,
                               Tag tag = {}) {
    all_reduce(input, output, op, tag)->wait();
  }
  void all_reduce_sync(Span buffer, ReduceOp op = ReduceOp::kSum, Tag tag = {}) {
    all_reduce_sync(buffer, buffer, op, tag);
  }

  // Makes all works of all ranks, running and future ones, fail with a CommError that gives the
  // reason and this rank. Never throws, never waits.
  virtual void abort(const std::string& reason) noexcept = 0;

  virtual Traffic traffic() const = 0;

 protected:
  ProcessGroup(int rank, int size, std::chrono::nanoseconds timeout)
      : rank_(rank), size_(size), timeout_(timeout) {}

 private:
  const int rank_;
  const int size_;
  const std::chrono::nanoseconds timeout_;
};

struct ProcessGroupOptions {
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);
  // Tells the groups of one job apart in the store ("world", "subgroup-0", …).
  std::string name = "world";
  // nccl: this rank's device.
  Device device = kCpu;
  // nccl: the transport of what lies in the host's memory, "shm" or "local".
  std::string host_kind = "shm";
};

// Collective. `kind`: "local" (the ranks are threads of this process and `store` is one they
// share), "shm" or, in builds for CUDA, "nccl": CUDA devices, one to a rank, and a group of
// `host_kind` beside it for memory of the host. Returns once all ranks are there; TimeoutError
// names those that are not.
std::shared_ptr<ProcessGroup> make_process_group(std::string_view kind,
                                                 std::shared_ptr<Store> store, int rank, int size,
                                                 const ProcessGroupOptions& options = {});

// Runs body(group) on `size` threads with a local group each, and joins them. The first error
// aborts the group, so that no other rank waits in vain, and is rethrown.
void run_local_ranks(int size, const std::function<void(ProcessGroup&)>& body,
                     const ProcessGroupOptions& options = {});

}  // namespace lockstep::dist
