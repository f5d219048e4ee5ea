#include "lockstep/dist/peer_wait.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "lockstep/core/check.h"

namespace lockstep::dist {
namespace {

using Clock = std::chrono::steady_clock;

// A sleeper looks up this often, so that a death is noticed soon.
constexpr std::chrono::milliseconds kLookUp{100};
// About 100 µs of pauses; and hardly any where ranks have to share cores, for the peer that is
// waited for may need this one.
constexpr int kSpins = 2500;
constexpr int kSpinsWhenCrowded = 20;
// Then, where there are cores enough, the core is offered to others (this rank's own computing, for
// one) between looks: a core that falls asleep takes longer to wake, above all in a virtual
// machine, than ranks that sum some MiB part from each other.
constexpr std::chrono::milliseconds kYields{2};

std::string seconds(std::chrono::nanoseconds time) {
  return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

}  // namespace

PeerWait::PeerWait(ControlBlock block, int rank, int size, std::chrono::nanoseconds timeout)
    : block_(block),
      rank_(rank),
      size_(size),
      timeout_(timeout),
      spins_(kSpinsWhenCrowded),
      yields_(0),
      watches_(static_cast<std::size_t>(size)) {}

void PeerWait::announce_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return;
  for (int core = 0; core < std::min(CPU_SETSIZE, kCoreWords * 64); ++core)
    if (CPU_ISSET(core, &set))
      block_.rank(rank_).cores[core / 64].fetch_or(std::uint64_t{1} << (core % 64),
                                                   std::memory_order_relaxed);
}

void PeerWait::know_peers() {
  int cores = 0;
  for (int w = 0; w < kCoreWords; ++w) {
    std::uint64_t any = 0;
    for (int p = 0; p < size_; ++p) any |= block_.rank(p).cores[w].load(std::memory_order_relaxed);
    cores += std::popcount(any);
  }
  if (cores >= size_) {
    spins_ = kSpins;
    yields_ = kYields;
  }
  for (int p = 0; p < size_; ++p) {
    const pid_t pid = block_.rank(p).pid.load(std::memory_order_acquire);
    if (p != rank_ && pid > 0) watches_[static_cast<std::size_t>(p)] = ProcessWatch(pid);
  }
}

void PeerWait::ring_all() noexcept {
  for (int p = 0; p < size_; ++p) {
    RankBlock& peer = block_.rank(p);
    if (peer.asleep.load(std::memory_order_seq_cst) == 0) continue;
    peer.bell.fetch_add(1, std::memory_order_seq_cst);
    futex_wake_all(peer.bell);
  }
}

bool PeerWait::wait_yielding(int peer, const Ready& ready) const {
  if (yields_ == std::chrono::milliseconds::zero()) return false;
  const auto end = Clock::now() + yields_;
  do {
    sched_yield();
    if (ready(peer)) return true;
  } while (Clock::now() < end && !aborted());
  return false;
}

void PeerWait::wait_asleep(int peer, const Ready& ready, RunningWork& work, int first, int last) {
  if (work.deadline == Clock::time_point{}) work.deadline = Clock::now() + timeout_;
  RankBlock& self = block_.rank(rank_);
  auto& sleepers = block_.head().sleepers;
  while (true) {
    // The bell is read before the last look at the word, and the publisher stores the word before
    // it looks for sleepers: one of the two sees the other.
    const std::uint32_t bell = self.bell.load(std::memory_order_seq_cst);
    self.asleep.fetch_add(1, std::memory_order_seq_cst);
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    const bool done = ready(peer);
    if (!done && !aborted()) {
      const auto left = work.deadline - Clock::now();
      futex_wait(self.bell, bell, std::min<std::chrono::nanoseconds>(left, kLookUp));
    }
    sleepers.fetch_sub(1, std::memory_order_seq_cst);
    self.asleep.fetch_sub(1, std::memory_order_seq_cst);
    if (done || ready(peer)) return;
    check_peers(ready, work, first, last);
    if (ready(peer)) return;
  }
}

void PeerWait::check_peers(const Ready& ready, const RunningWork& work, int first, int last) const {
  check_abort(work);
  std::vector<int> missing;
  for (int p = first; p < last; ++p) {
    if (p == rank_ || ready(p)) continue;
    const auto state = static_cast<RankState>(block_.rank(p).state.load(std::memory_order_acquire));
    const bool left = state == RankState::kLeft;
    const bool ended = watches_[static_cast<std::size_t>(p)].ended();
    // What it published before it went still counts.
    if ((left || ended) && !ready(p)) {
      const std::string what = describe(*work.collective);
      throw CommError(fmt::format("{}, number {}: {} {} before it took part", what, work.sequence,
                                  name_rank(p), left ? "left the group" : "died"));
    }
    missing.push_back(p);
  }
  if (!missing.empty() && Clock::now() >= work.deadline) time_out(missing, work);
}

void PeerWait::time_out(const std::vector<int>& missing, const RunningWork& work) const {
  std::string ranks;
  for (int p : missing) {
    if (!ranks.empty()) ranks += ", ";
    ranks += name_rank(p);
    const ProcessWatch& watch = watches_[static_cast<std::size_t>(p)];
    if (watch.pid() > 0) ranks += ", " + watch.state();
  }
  throw TimeoutError(fmt::format("{}, number {}: rank {} waited {} for {}",
                                 describe(*work.collective), work.sequence, rank_,
                                 seconds(timeout_), ranks));
}

std::string PeerWait::name_rank(int p) const {
  const pid_t pid = watches_[static_cast<std::size_t>(p)].pid();
  return pid > 0 ? fmt::format("rank {} (process {})", p, pid) : fmt::format("rank {}", p);
}

void PeerWait::abort(const std::string& reason) noexcept {
  AbortNote& note = block_.head().abort;
  std::uint32_t none = 0;
  if (note.state.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) {
    note.rank = rank_;
    const std::size_t n = std::min(reason.size(), sizeof(note.text) - 1);
    std::memcpy(note.text, reason.data(), n);
    note.text[n] = 0;
    note.state.store(2, std::memory_order_seq_cst);
  }
  ring_all();
}

void PeerWait::check_abort(const RunningWork& work) const {
  const AbortNote& note = block_.head().abort;
  if (note.state.load(std::memory_order_acquire) != 2) return;
  throw CommError(fmt::format("{}, number {}: rank {} has given up: {}", describe(*work.collective),
                              work.sequence, note.rank, note.text));
}

}  // namespace lockstep::dist
