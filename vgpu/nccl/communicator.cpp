#include "vgpu/nccl/communicator.h"

#include <chrono>
#include <thread>

#include "vgpu/runtime/device.h"
#include "vgpu/runtime/settings.h"

namespace vgpu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kConnectDeadline = std::chrono::minutes(2);
constexpr auto kLookForLost = std::chrono::milliseconds(20);

thread_local std::string thread_text;

// Spins briefly, then sleeps between looks.
class Patience {
 public:
  void wait() {
    if (++looks_ < 200)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

 private:
  int looks_ = 0;
};

}  // namespace

ncclResult_t nccl_fail(ncclResult_t result, const std::string& text) {
  thread_text = text;
  return result;
}

const char* nccl_last_error() { return thread_text.c_str(); }

ncclResult_t Communicator::fail(ncclResult_t result, const std::string& text) {
  std::lock_guard lock(mutex_);
  text_ = text;
  thread_text = text;
  return result;
}

const char* Communicator::last_error() {
  std::lock_guard lock(mutex_);
  return text_.c_str();
}

ncclResult_t Communicator::connect(const ncclUniqueId& id, int ranks, int rank) {
  std::string error;
  std::unique_ptr<Rendezvous> made(
      Rendezvous::enter(id, ranks, rank, settings().physical_device(device), error));
  if (made == nullptr) return fail(ncclInvalidUsage, error);
  const auto deadline = Clock::now() + kConnectDeadline;
  Patience patience;
  auto look = Clock::now() + kLookForLost;
  while (!made->all_joined()) {
    if (aborted)
      error = "aborted";
    else if (Clock::now() > deadline)
      error = "not all " + std::to_string(ranks) + " ranks came within two minutes";
    if (Clock::now() > look) {
      look = Clock::now() + kLookForLost;
      if (const int lost = made->lost_rank(); lost >= 0)
        error = "rank " + std::to_string(lost) + " left before all were there";
    }
    if (!error.empty()) {
      made->leave();
      made->remove_file();
      return fail(ncclRemoteError, error);
    }
    patience.wait();
  }
  made->remove_file();
  meeting = std::move(made);
  return ncclSuccess;
}

void Communicator::wait_until(const std::function<bool()>& condition) {
  Patience patience;
  auto look = Clock::now() + kLookForLost;
  while (!condition()) {
    if (aborted) throw CommunicatorAborted{};
    if (async_error == ncclSuccess && Clock::now() > look) {
      look = Clock::now() + kLookForLost;
      const int lost = meeting->lost_rank();
      if (lost >= 0 && !condition()) {
        fail(ncclRemoteError, "rank " + std::to_string(lost) + " is gone");
        async_error = ncclRemoteError;
      }
    }
    patience.wait();
  }
}

void Communicator::meet() {
  const std::uint64_t phase = ++meeting->state(meeting->rank()).phase;
  wait_until([&] {
    for (int r = 0; r < meeting->ranks(); ++r)
      if (meeting->state(r).phase < phase) return false;
    return true;
  });
}

Communicator::Running::Running(Communicator& c) : c_(c) {
  std::unique_lock lock(c_.mutex_);
  c_.idle_.wait(lock, [&] { return !c_.running_; });
  c_.running_ = true;
}

Communicator::Running::~Running() {
  {
    std::lock_guard lock(c_.mutex_);
    c_.running_ = false;
  }
  c_.idle_.notify_all();
}

void Communicator::abort() {
  aborted = true;
  while (async_error == ncclInProgress)
    std::this_thread::yield();  // it still connects, and gives up
  if (meeting != nullptr) meeting->leave();
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return !running_; });
}

void Communicator::destroy() {
  if (async_error != ncclSuccess) return abort();
  std::shared_ptr<Signal> end;
  {
    std::lock_guard lock(host_mutex());
    end = last;
  }
  if (end != nullptr) end->wait();
  destroyed = true;
  if (meeting != nullptr) meeting->leave();
}

}  // namespace vgpu
