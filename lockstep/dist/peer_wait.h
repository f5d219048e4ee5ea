// PeerWait: how a rank waits for words that its peers store in shared memory, and tells them of its
// own: spin briefly, then yield, then sleep; notice dead peers, aborts and deadlines.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/dist/collective.h"
#include "lockstep/dist/control_block.h"
#include "lockstep/dist/futex.h"
#include "lockstep/dist/process_watch.h"

namespace lockstep::dist {

// A collective while it runs: what its waits need for deadlines and errors.
struct RunningWork {
  const Collective* collective = nullptr;
  std::uint64_t sequence = 0;
  // Set at the first wait that does not end at once.
  std::chrono::steady_clock::time_point deadline{};
};

class PeerWait {
 public:
  PeerWait(ControlBlock block, int rank, int size, std::chrono::nanoseconds timeout);

  // Tells peers the cores that this thread may run on; before the ranks meet.
  void announce_cores();
  // Once all ranks are there: watches their processes, and spins longer if each has a core.
  void know_peers();

  // word = value, visible with all that was written before it; wakes whoever sleeps.
  void publish(std::atomic<std::uint64_t>& word, std::uint64_t value) {
    // Sequentially consistent with the sleepers' count: see wait_asleep.
    word.store(value, std::memory_order_seq_cst);
    if (block_.head().sleepers.load(std::memory_order_seq_cst) != 0) ring_all();
  }

  // Returns once word_of(p) >= target for every p in [0, size) but this rank. Throws TimeoutError
  // at the work's deadline, CommError at an abort or where a rank that is waited for has died or
  // left; both name the ranks.
  template <class WordOf>
  void await_all(WordOf word_of, std::uint64_t target, RunningWork& work) {
    for (int p = 0; p < size_; ++p)
      if (p != rank_) await_word(p, word_of, target, work, 0, size_);
  }
  // The same for one peer.
  template <class WordOf>
  void await_one(int peer, WordOf word_of, std::uint64_t target, RunningWork& work) {
    await_word(peer, word_of, target, work, peer, peer + 1);
  }

  // Writes the note unless there is one already, and wakes everybody.
  void abort(const std::string& reason) noexcept;
  bool aborted() const { return block_.head().abort.state.load(std::memory_order_acquire) != 0; }
  // Throws CommError with the note's text where there is one by another rank.
  void check_abort(const RunningWork& work) const;

  void ring_all() noexcept;

 private:
  using Ready = std::function<bool(int peer)>;

  template <class WordOf>
  void await_word(int peer, WordOf word_of, std::uint64_t target, RunningWork& work, int first,
                  int last) {
    const auto& word = word_of(peer);
    for (int i = 0; i < spins_; ++i) {
      if (word.load(std::memory_order_acquire) >= target) return;
      cpu_relax();
    }
    const Ready ready = [&](int p) { return word_of(p).load(std::memory_order_seq_cst) >= target; };
    if (!wait_yielding(peer, ready)) wait_asleep(peer, ready, work, first, last);
  }

  bool wait_yielding(int peer, const Ready& ready) const;  // whether it came to be ready
  void wait_asleep(int peer, const Ready& ready, RunningWork& work, int first, int last);
  void check_peers(const Ready& ready, const RunningWork& work, int first, int last) const;
  [[noreturn]] void time_out(const std::vector<int>& missing, const RunningWork& work) const;
  std::string name_rank(int p) const;

  ControlBlock block_;
  int rank_;
  int size_;
  std::chrono::nanoseconds timeout_;
  int spins_;
  std::chrono::milliseconds yields_;
  std::vector<ProcessWatch> watches_;
};

}  // namespace lockstep::dist
