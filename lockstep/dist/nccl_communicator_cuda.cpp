#include "lockstep/dist/nccl_communicator.h"

#include <thread>

#include "lockstep/core/check.h"
#include "lockstep/core/device_guard.h"

namespace lockstep::dist {

NcclCommunicator::NcclCommunicator(const ncclUniqueId& id, int rank, int size, Device device,
                                   std::chrono::nanoseconds timeout)
    : device_(device), timeout_(timeout) {
  const DeviceGuard guard(device);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // so that a rank that never comes is a timeout
  const ncclResult_t result =
      settle(ncclCommInitRankConfig(&communicator_, size, id, rank, &config));
  if (result == ncclSuccess) return;
  const std::string text = text_of(result);
  end_now();
  if (result == ncclInProgress)
    throw TimeoutError(
        fmt::format("nccl: after {:g} s rank {} still waits for the other {} ranks to make a "
                    "communicator on {}",
                    std::chrono::duration<double>(timeout).count(), rank, size - 1, device.str()));
  throw CommError(fmt::format("nccl: rank {} of {} cannot make a communicator on {}: {}", rank,
                              size, device.str(), text));
}

NcclCommunicator::~NcclCommunicator() {
  if (!communicator_ || aborted_) return;
  if (settle(ncclCommFinalize(communicator_)) == ncclSuccess)
    ncclCommDestroy(communicator_);
  else
    end_now();
}

// Of a communicator that does not block, until NCCL is through or the deadline.
ncclResult_t NcclCommunicator::settle(ncclResult_t result) {
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  while (result == ncclInProgress && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (ncclCommGetAsyncError(communicator_, &result) != ncclSuccess) return ncclInternalError;
  }
  return result;
}

std::string NcclCommunicator::text_of(ncclResult_t result) const {
  const char* const last = ncclGetLastError(communicator_);
  std::string text = ncclGetErrorString(result);
  if (last && *last) text += fmt::format(" ({})", last);
  return text;
}

void NcclCommunicator::run(const std::string& what,
                           const std::function<ncclResult_t(ncclComm_t)>& operation) {
  if (aborted_) throw CommError(fmt::format("{}: the communicator was aborted", what));
  const DeviceGuard guard(device_);
  const ncclResult_t result = settle(operation(communicator_));
  if (result == ncclSuccess) return;
  throw CommError(fmt::format("{}: NCCL says {}", what, text_of(result)));
}

std::string NcclCommunicator::asynchronous_error() {
  ncclResult_t result = ncclSuccess;
  if (aborted_ || ncclCommGetAsyncError(communicator_, &result) != ncclSuccess) return "";
  return result == ncclSuccess || result == ncclInProgress ? "" : text_of(result);
}

void NcclCommunicator::end_now() noexcept {
  if (!aborted_.exchange(true) && communicator_) ncclCommAbort(communicator_);
}

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return ncclFloat32;
    case DType::kF64:
      return ncclFloat64;
    case DType::kF16:
      return ncclFloat16;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kI32:
      return ncclInt32;
    case DType::kI64:
      return ncclInt64;
    case DType::kU8:
    case DType::kBool:
      return ncclUint8;
  }
  return ncclUint8;
}

}  // namespace lockstep::dist
