// NCCL's calls: checks of the arguments, then the operations of exchange.h.
#include <thread>

#include "vgpu/include/nccl.h"
#include "vgpu/nccl/communicator.h"
#include "vgpu/nccl/group.h"
#include "vgpu/nccl/reduce.h"
#include "vgpu/runtime/device.h"
#include "vgpu/runtime/memory_range.h"
#include "vgpu/runtime/peer.h"

namespace vgpu {
namespace {

// "" where the range lies in memory that the communicator's device can reach.
std::string problem_with(const void* pointer, std::size_t bytes, int device, MemoryRange& range) {
  if (pointer == nullptr) return "a null pointer";
  if (look_up(pointer, bytes, range) != cudaSuccess)
    return "memory beyond the end of an allocation";
  if (range.allocation == nullptr)
    return is_registered(reinterpret_cast<std::uintptr_t>(pointer), bytes)
               ? ""
               : "memory of the host that is not pinned";
  if (range.is_device() && range.allocation->device != device)
    return "memory of device " + std::to_string(range.allocation->device) +
           " for a communicator of device " + std::to_string(device);
  return "";
}

ncclResult_t check_communicator(ncclComm_t comm, const char* name) {
  if (comm == nullptr || comm->state == nullptr)
    return nccl_fail(ncclInvalidArgument, std::string(name) + ": the communicator is null");
  Communicator& c = *comm->state;
  if (c.async_error == ncclInProgress || c.meeting == nullptr)
    return c.fail(ncclInvalidUsage, std::string(name) + ": the communicator is not ready");
  if (c.async_error != ncclSuccess) return c.async_error;
  return ncclSuccess;
}

// `in_place`: where the one must begin within the other if they overlap.
ncclResult_t start(ncclComm_t comm, Transfer t, std::size_t send_bytes, std::size_t receive_bytes,
                   std::ptrdiff_t in_place, cudaStream_t stream) {
  Communicator& c = *comm->state;
  std::string problem;
  if (t.from != nullptr) problem = problem_with(t.from, send_bytes, c.device, t.source);
  if (problem.empty() && t.to != nullptr)
    problem = problem_with(t.to, receive_bytes, c.device, t.target);
  if (problem.empty() && t.from != nullptr && t.to != nullptr) {
    const auto* from = static_cast<const char*>(t.from);
    const auto* to = static_cast<const char*>(t.to);
    const bool overlap = from < to + receive_bytes && to < from + send_bytes;
    if (overlap && from - to != in_place) problem = "buffers that overlap, but not as in place";
  }
  if (!problem.empty()) return c.fail(ncclInvalidArgument, std::string(t.name()) + ": " + problem);
  return submit(comm, std::move(t), stream);
}

ncclResult_t collective(CollectiveKind kind, const void* from, void* to, std::size_t count,
                        ncclDataType_t type, int op, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  Transfer t;
  t.call = {kind, type, op, root, count};
  if (const ncclResult_t result = check_communicator(comm, t.name()); result != ncclSuccess)
    return result;
  Communicator& c = *comm->state;
  const int ranks = c.meeting->ranks(), rank = c.meeting->rank();
  const std::size_t element = element_bytes(type), bytes = count * element;
  const std::string name = t.name();
  if (element == 0) return c.fail(ncclInvalidArgument, name + ": the type is not supported");
  if (op < 0 || op >= ncclNumOps) return c.fail(ncclInvalidArgument, name + ": no such operation");
  if (root < 0 || root >= ranks) return c.fail(ncclInvalidArgument, name + ": no such root");
  if (count == 0) return ncclSuccess;
  const bool has_result = (kind != CollectiveKind::kReduce && kind != CollectiveKind::kBroadcast) ||
                          rank == root || kind == CollectiveKind::kBroadcast;
  const bool has_input = kind != CollectiveKind::kBroadcast || rank == root;
  if ((has_result && to == nullptr) || (has_input && from == nullptr))
    return c.fail(ncclInvalidArgument, name + ": a null pointer");
  t.from = has_input ? from : nullptr;
  t.to = has_result ? to : nullptr;
  const auto n = static_cast<std::size_t>(ranks);
  const auto own = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * bytes);
  const bool gathers = kind == CollectiveKind::kAllGather;
  const bool scatters = kind == CollectiveKind::kReduceScatter;
  return start(comm, std::move(t), scatters ? n * bytes : bytes, gathers ? n * bytes : bytes,
               gathers    ? own
               : scatters ? -own
                          : 0,
               stream);
}

ncclResult_t message(Transfer::Kind kind, const void* from, void* to, std::size_t count,
                     ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  Transfer t;
  t.kind = kind;
  if (const ncclResult_t result = check_communicator(comm, t.name()); result != ncclSuccess)
    return result;
  Communicator& c = *comm->state;
  const std::string name = t.name();
  if (element_bytes(type) == 0)
    return c.fail(ncclInvalidArgument, name + ": the type is not supported");
  if (peer < 0 || peer >= c.meeting->ranks())
    return c.fail(ncclInvalidArgument, name + ": no such peer");
  if (count == 0) return ncclSuccess;
  if (from == nullptr && to == nullptr)
    return c.fail(ncclInvalidArgument, name + ": a null pointer");
  t.from = from;
  t.to = to;
  t.peer = peer;
  const std::size_t bytes = count * element_bytes(type);
  return start(comm, std::move(t), bytes, bytes, 0, stream);
}

}  // namespace
}  // namespace vgpu

using vgpu::CollectiveKind;
using vgpu::nccl_fail;
using vgpu::Transfer;

ncclResult_t ncclGetVersion(int* version) {
  if (version == nullptr) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (id == nullptr) return nccl_fail(ncclInvalidArgument, "ncclGetUniqueId: a null pointer");
  *id = vgpu::Rendezvous::new_id();
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (comm == nullptr) return nccl_fail(ncclInvalidArgument, "ncclCommInitRank: a null pointer");
  *comm = nullptr;
  if (ranks < 1 || ranks > vgpu::kMostRanks || rank < 0 || rank >= ranks)
    return nccl_fail(ncclInvalidArgument, "ncclCommInitRank: rank " + std::to_string(rank) +
                                              " of " + std::to_string(ranks));
  if (config != nullptr && config->magic != 0xcafebeef)
    return nccl_fail(ncclInvalidArgument, "ncclCommInitRank: not a configuration");
  const int device = vgpu::current_device();
  if (vgpu::device_at(device) == nullptr)
    return nccl_fail(ncclUnhandledCudaError, "ncclCommInitRank: there is no device");
  auto state = std::make_shared<vgpu::Communicator>(device);
  *comm = new ncclComm{state};
  if (config != nullptr && config->blocking == 0) {
    state->async_error = ncclInProgress;
    std::thread([=] { state->async_error = state->connect(id, ranks, rank); }).detach();
    return ncclInProgress;
  }
  return vgpu::submit_connection([=] {
    const ncclResult_t result = state->connect(id, ranks, rank);
    if (result == ncclSuccess) return result;
    const std::string text = state->last_error();
    delete *comm;
    *comm = nullptr;
    return nccl_fail(result, text);
  });
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int devices, const int* device_list) {
  if (comms == nullptr || devices < 1)
    return nccl_fail(ncclInvalidArgument, "ncclCommInitAll: no devices");
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  const int before = vgpu::current_device();
  ncclResult_t result = ncclGroupStart();
  for (int i = 0; i < devices && result == ncclSuccess; ++i) {
    if (cudaSetDevice(device_list == nullptr ? i : device_list[i]) != cudaSuccess)
      result = nccl_fail(ncclUnhandledCudaError, "ncclCommInitAll: no such device");
    else
      result = ncclCommInitRank(&comms[i], devices, id, i);
  }
  const ncclResult_t ended = ncclGroupEnd();
  cudaSetDevice(before);
  return result == ncclSuccess ? ended : result;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return vgpu::check_communicator(comm, "ncclCommFinalize");
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  comm->state->destroy();
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  comm->state->abort();
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  if (comm == nullptr || error == nullptr)
    return nccl_fail(ncclInvalidArgument, "ncclCommGetAsyncError: a null pointer");
  *error = comm->state->async_error;
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  const ncclResult_t result = vgpu::check_communicator(comm, "ncclCommCount");
  if (result == ncclSuccess) *count = comm->state->meeting->ranks();
  return result;
}

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device) {
  const ncclResult_t result = vgpu::check_communicator(comm, "ncclCommCuDevice");
  if (result == ncclSuccess) *device = comm->state->device;
  return result;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  const ncclResult_t result = vgpu::check_communicator(comm, "ncclCommUserRank");
  if (result == ncclSuccess) *rank = comm->state->meeting->rank();
  return result;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t comm) {
  return comm == nullptr ? vgpu::nccl_last_error() : comm->state->last_error();
}

ncclResult_t ncclMemAlloc(void** pointer, std::size_t bytes) {
  return cudaMalloc(pointer, bytes) == cudaSuccess
             ? ncclSuccess
             : nccl_fail(ncclUnhandledCudaError, "ncclMemAlloc: out of memory");
}

ncclResult_t ncclMemFree(void* pointer) {
  return cudaFree(pointer) == cudaSuccess
             ? ncclSuccess
             : nccl_fail(ncclUnhandledCudaError, "ncclMemFree: not memory of ncclMemAlloc");
}

ncclResult_t ncclCommRegister(ncclComm_t comm, void* buffer, std::size_t bytes, void** handle) {
  const ncclResult_t result = vgpu::check_communicator(comm, "ncclCommRegister");
  if (result != ncclSuccess) return result;
  vgpu::MemoryRange range;
  const std::string problem = vgpu::problem_with(buffer, bytes, comm->state->device, range);
  if (handle == nullptr || !problem.empty())
    return comm->state->fail(ncclInvalidArgument, "ncclCommRegister: " + problem);
  *handle = buffer;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) {
  const ncclResult_t result = vgpu::check_communicator(comm, "ncclCommDeregister");
  if (result != ncclSuccess || handle != nullptr) return result;
  return comm->state->fail(ncclInvalidArgument, "ncclCommDeregister: a null handle");
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return vgpu::collective(CollectiveKind::kAllReduce, from, to, count, type, op, 0, comm, stream);
}

ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return vgpu::collective(CollectiveKind::kReduce, from, to, count, type, op, root, comm, stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return vgpu::collective(CollectiveKind::kBroadcast, from, to, count, type, 0, root, comm, stream);
}

ncclResult_t ncclBcast(void* buffer, std::size_t count, ncclDataType_t type, int root,
                       ncclComm_t comm, cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return vgpu::collective(CollectiveKind::kAllGather, from, to, count, type, 0, 0, comm, stream);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return vgpu::collective(CollectiveKind::kReduceScatter, from, to, count, type, op, 0, comm,
                          stream);
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return vgpu::message(Transfer::Kind::kSend, from, nullptr, count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return vgpu::message(Transfer::Kind::kReceive, nullptr, to, count, type, peer, comm, stream);
}
