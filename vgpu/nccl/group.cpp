#include "vgpu/nccl/group.h"

#include <algorithm>
#include <list>
#include <thread>
#include <vector>

#include "vgpu/runtime/device.h"

namespace vgpu {
namespace {

struct Pending {
  std::shared_ptr<Communicator> communicator;
  cudaStream_t stream;
  std::vector<Transfer> transfers;
};

struct Group {
  int depth = 0;
  std::list<Pending> operations;
  std::vector<std::function<ncclResult_t()>> connections;
};
thread_local Group group;

ncclResult_t enqueue_pending(Pending operation) {
  Communicator& c = *operation.communicator;
  std::lock_guard lock(host_mutex());
  cudaStream_t stream = operation.stream;
  if (!stream->is_capturing() && c.last != nullptr) {
    stream->wait_for(c.last);
    stream->clock.merge(c.last_clock);
  }
  const std::string name = operation.transfers.front().name();
  const cudaError_t error = enqueue(
      stream, name,
      [c = operation.communicator, transfers = std::move(operation.transfers)](
          std::uint32_t id, const VectorClock& known) { carry_out(*c, transfers, id, known); });
  if (error != cudaSuccess)
    return c.fail(ncclUnhandledCudaError, std::string("CUDA: ") + cudaGetErrorString(error));
  if (!stream->is_capturing()) {
    c.last = stream->record();
    c.last_clock = stream->clock;
  }
  return ncclSuccess;
}

bool is_collective(const Transfer& t) { return t.kind == Transfer::Kind::kCollective; }

// Sends and receives of one communicator and stream become one operation.
void add_to_group(Pending operation) {
  if (!is_collective(operation.transfers.front()))
    for (Pending& earlier : group.operations)
      if (earlier.communicator == operation.communicator && earlier.stream == operation.stream &&
          !is_collective(earlier.transfers.front())) {
        earlier.transfers.push_back(operation.transfers.front());
        return;
      }
  group.operations.push_back(std::move(operation));
}

ncclResult_t connect_all(const std::vector<std::function<ncclResult_t()>>& connections) {
  std::vector<ncclResult_t> results(connections.size(), ncclSuccess);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < connections.size(); ++i)
    threads.emplace_back([&, i] { results[i] = connections[i](); });
  for (std::thread& thread : threads) thread.join();
  const auto wrong =
      std::find_if(results.begin(), results.end(), [](auto r) { return r != ncclSuccess; });
  return wrong == results.end() ? ncclSuccess : *wrong;
}

}  // namespace

ncclResult_t submit(ncclComm_t comm, Transfer transfer, cudaStream_t stream) {
  Communicator& c = *comm->state;
  cudaStream_t s = stream == nullptr || stream == cudaStreamLegacy
                       ? device_at(c.device)->default_stream
                       : resolve(stream);
  if (s == nullptr || s->device != c.device)
    return c.fail(ncclInvalidArgument, std::string(transfer.name()) +
                                           ": the stream is not one of the communicator's device");
  Pending operation{comm->state, s, {std::move(transfer)}};
  if (group.depth == 0) return enqueue_pending(std::move(operation));
  add_to_group(std::move(operation));
  return ncclSuccess;
}

ncclResult_t submit_connection(std::function<ncclResult_t()> connect) {
  if (group.depth == 0) return connect();
  group.connections.push_back(std::move(connect));
  return ncclSuccess;
}

}  // namespace vgpu

ncclResult_t ncclGroupStart() {
  ++vgpu::group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  vgpu::Group& group = vgpu::group;
  if (group.depth == 0)
    return vgpu::nccl_fail(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--group.depth > 0) return ncclSuccess;
  vgpu::Group mine = std::move(group);
  group = {};
  ncclResult_t result = vgpu::connect_all(mine.connections);
  for (vgpu::Pending& operation : mine.operations)
    if (result == ncclSuccess) result = vgpu::enqueue_pending(std::move(operation));
  return result;
}
