// A rank of a communicator: how it waits for the others, and what went wrong.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "vgpu/nccl/rendezvous.h"
#include "vgpu/runtime/stream.h"

namespace vgpu {

// Thrown within an operation whose communicator is aborted: the operation ends, nothing breaks.
struct CommunicatorAborted {};

class Communicator {
 public:
  explicit Communicator(int device) : device(device) {}

  // Comes to the meeting and waits for all ranks. Ends with an error after two minutes, when a rank
  // that came is lost, or when aborted.
  ncclResult_t connect(const ncclUniqueId& id, int ranks, int rank);

  // Within operations. Where a rank is lost the asynchronous error is set, and the wait goes on
  // until the communicator is aborted, as with NCCL.
  void wait_until(const std::function<bool()>& condition);
  void meet();  // all ranks are here

  // Operations of one communicator run one at a time.
  class Running {
   public:
    explicit Running(Communicator& c);
    ~Running();

   private:
    Communicator& c_;
  };

  void abort();  // returns when no operation runs any more
  void destroy();
  ncclResult_t fail(ncclResult_t result, const std::string& text);
  const char* last_error();

  const int device;
  std::unique_ptr<Rendezvous> meeting;
  std::atomic<ncclResult_t> async_error{ncclSuccess};
  std::atomic<bool> aborted{false}, destroyed{false};

  // Under host_mutex(): operations come in the order of the calls, whatever their streams.
  std::shared_ptr<Signal> last;
  VectorClock last_clock;

 private:
  std::mutex mutex_;
  std::condition_variable idle_;
  bool running_ = false;
  std::string text_;
};

// "" text: keeps what is there. For calls without a communicator.
ncclResult_t nccl_fail(ncclResult_t result, const std::string& text);
const char* nccl_last_error();

}  // namespace vgpu

struct ncclComm {
  std::shared_ptr<vgpu::Communicator> state;
};
