#include "lockstep/dist/local_group.h"

#include <unistd.h>

#include <charconv>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "lockstep/core/check.h"
#include "lockstep/dist/local_store.h"
#include "lockstep/dist/memory_file.h"
#include "lockstep/dist/peer_group.h"

namespace lockstep::dist {
namespace {

class ThreadMemory final : public PeerMemory {
 public:
  std::shared_ptr<Storage> allocate(std::size_t bytes) override {
    auto storage = std::make_shared<Storage>(bytes);
    if (bytes > 0) std::memset(storage->data(), 0, bytes);
    return storage;
  }
  PeerAddress address_of(const void* data, std::size_t bytes) override {
    return {0, -1, static_cast<std::int64_t>(bytes), reinterpret_cast<std::intptr_t>(data)};
  }
  void* reach(int, const PeerAddress& address) override {
    return reinterpret_cast<void*>(static_cast<std::intptr_t>(address.offset));
  }
};

// Added to the count of takers once nobody may take the region any more.
constexpr std::int64_t kClosed = std::int64_t{1} << 40;

// Rank 0 gives the others a pointer to its own handle on the region. It lives until everyone who
// is entitled to it, by the count of takers, has copied it.
struct Offer {
  std::shared_ptr<void> region;
  std::atomic<std::int64_t> copied{0};
};

class OpenOffer {
 public:
  OpenOffer(Store& store, std::string key, std::shared_ptr<void> region)
      : store_(store), key_(std::move(key)) {
    offer_.region = std::move(region);
    store_.set(key_, fmt::format("{}:{}", getpid(), reinterpret_cast<std::uintptr_t>(&offer_)));
  }
  ~OpenOffer() {
    try {
      const std::int64_t entitled = store_.add(key_ + "/takers", kClosed) - kClosed;
      while (offer_.copied.load(std::memory_order_acquire) < entitled) std::this_thread::yield();
    } catch (const std::exception&) {
      // The store is gone, and with it the way to the offer.
    }
  }

 private:
  Store& store_;
  std::string key_;
  Offer offer_;
};

std::shared_ptr<void> take_offer(Store& store, const std::string& key, int rank, Duration timeout) {
  const std::string value = store.get(key, timeout);
  long pid = 0;
  std::uintptr_t address = 0;
  const char* end = value.data() + value.size();
  const auto [colon, error] = std::from_chars(value.data(), end, pid);
  const bool valid = error == std::errc{} && colon != end &&
                     std::from_chars(colon + 1, end, address).ec == std::errc{};
  LOCKSTEP_CHECK(valid && pid == getpid(),
                 "local group: rank {} is in process {}, rank 0 in another; the ranks of a local "
                 "group must be threads of one process",
                 rank, getpid());
  LOCKSTEP_CHECK_AS(CommError, store.add(key + "/takers", 1) < kClosed,
                    "local group: rank {} came after rank 0 had given up", rank);
  auto* offer = reinterpret_cast<Offer*>(address);
  std::shared_ptr<void> region = offer->region;
  offer->copied.fetch_add(1, std::memory_order_acq_rel);
  return region;
}

}  // namespace

std::shared_ptr<ProcessGroup> make_local_group(Store& store, int rank, int size,
                                               const ProcessGroupOptions& options) {
  const std::string key = "group/" + options.name + "/local";
  const auto join = [&](std::shared_ptr<void> region) {
    return std::make_shared<PeerGroup>("local", rank, size, options.timeout, std::move(region),
                                       std::make_unique<ThreadMemory>());
  };
  if (rank != 0)
    return join(take_offer(store, key, rank, std::chrono::ceil<Duration>(options.timeout)));
  auto region = map_private_memory(ControlBlock::bytes(size));
  OpenOffer offer(store, key, region);
  return join(std::move(region));
}

void run_local_ranks(int size, const std::function<void(ProcessGroup&)>& body,
                     const ProcessGroupOptions& options) {
  LOCKSTEP_CHECK(size >= 1, "run_local_ranks: {} ranks", size);
  LocalStore store;
  std::mutex mutex;
  std::exception_ptr first;
  const auto run_rank = [&](int rank) {
    std::shared_ptr<ProcessGroup> group;
    try {
      group = make_local_group(store, rank, size, options);
      body(*group);
    } catch (const std::exception& error) {
      {
        std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      if (group) group->abort(error.what());
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 1; rank < size; ++rank) threads.emplace_back(run_rank, rank);
  run_rank(0);
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace lockstep::dist
