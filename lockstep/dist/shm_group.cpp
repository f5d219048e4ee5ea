#include "lockstep/dist/shm_group.h"

#include <unistd.h>

#include <charconv>
#include <random>
#include <vector>

#include "lockstep/core/check.h"
#include "lockstep/dist/memory_file.h"
#include "lockstep/dist/peer_group.h"
#include "lockstep/dist/store.h"
#include "lockstep/dist/symmetric_heap.h"

namespace lockstep::dist {
namespace {

// Where rank 0 keeps the control block, as it stands in the store: "pid:fd:nonce". The nonce tells
// a wrong process (another host's, a later one's) from the right one.
struct Meeting {
  pid_t pid = 0;
  int fd = -1;
  std::uint64_t nonce = 0;
};

Meeting parse_meeting(const std::string& text) {
  Meeting meeting;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](auto& value) {
    const auto [next, error] = std::from_chars(at, end, value);
    const bool last = next == end;
    LOCKSTEP_CHECK_AS(CommError, error == std::errc{} && (last || *next == ':'),
                      "shm group: the store holds \"{}\", wanted pid:fd:nonce", text);
    at = last ? end : next + 1;
  };
  number(meeting.pid);
  number(meeting.fd);
  number(meeting.nonce);
  return meeting;
}

std::uint64_t random_nonce() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

std::shared_ptr<ProcessGroup> join(std::shared_ptr<void> region, int rank, int size,
                                   const ProcessGroupOptions& options) {
  ControlBlock block(region.get(), size);
  block.rank(rank).pid.store(getpid(), std::memory_order_release);
  auto pid_of = [block](int r) {
    return static_cast<pid_t>(block.rank(r).pid.load(std::memory_order_acquire));
  };
  return std::make_shared<PeerGroup>("shm", rank, size, options.timeout, std::move(region),
                                     std::make_unique<SymmetricHeap>(std::move(pid_of)));
}

}  // namespace

std::shared_ptr<ProcessGroup> make_shm_group(Store& store, int rank, int size,
                                             const ProcessGroupOptions& options) {
  const std::string key = "group/" + options.name + "/shm";
  const std::size_t bytes = ControlBlock::bytes(size);
  if (rank == 0) {
    MemoryFile file(bytes);
    ControlBlock block(file.data(), size);
    block.head().size = size;
    block.head().nonce = random_nonce();
    store.set(key, fmt::format("{}:{}:{}", getpid(), file.fd(), block.head().nonce));
    // All ranks have mapped the file when this returns.
    return join(file.mapping(), rank, size, options);
  }
  std::string text;
  try {
    text = store.get(key, std::chrono::ceil<Duration>(options.timeout));
  } catch (const TimeoutError& error) {
    throw TimeoutError(fmt::format("shm group: rank {} waited for rank 0: {}", rank, error.what()));
  }
  const Meeting meeting = parse_meeting(text);
  auto region = map_memory_file(meeting.pid, meeting.fd, bytes);
  const ControlBlock::Head& head = ControlBlock(region.get(), size).head();
  LOCKSTEP_CHECK_AS(CommError, head.nonce == meeting.nonce && head.size == size,
                    "shm group: process {} is not rank 0 of a group of {} ranks on this host",
                    meeting.pid, size);
  return join(std::move(region), rank, size, options);
}

}  // namespace lockstep::dist
