// One rank's communicator of NCCL, with errors as exceptions and a deadline for whatever NCCL does
// in the background. Internal: includes NCCL's header.
#pragma once

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "lockstep/core/device.h"
#include "lockstep/core/dtype.h"

namespace lockstep::dist {

class NcclCommunicator {
 public:
  // Collective. Throws CommError, or TimeoutError where not all ranks have come by the timeout.
  NcclCommunicator(const ncclUniqueId& id, int rank, int size, Device device,
                   std::chrono::nanoseconds timeout);
  // Ends it without a wait for work that cannot end.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Hands one operation to NCCL; throws CommError naming `what`.
  void run(const std::string& what, const std::function<ncclResult_t(ncclComm_t)>& operation);
  // What went wrong in the background; empty if nothing did. Never waits.
  std::string asynchronous_error();
  // Its kernels end, whatever the other ranks do. Thread-safe.
  void end_now() noexcept;

 private:
  ncclResult_t settle(ncclResult_t result);
  std::string text_of(ncclResult_t result) const;

  const Device device_;
  const std::chrono::nanoseconds timeout_;
  ncclComm_t communicator_ = nullptr;
  std::atomic<bool> aborted_{false};
};

ncclDataType_t nccl_type(DType dtype);

}  // namespace lockstep::dist
