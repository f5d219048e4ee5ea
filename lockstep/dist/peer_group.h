// PeerGroup: collectives among ranks of one host that read and write each other's memory. `local`
// (threads) and `shm` (processes) are this group with different ways to reach a peer's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/dist/control_block.h"
#include "lockstep/dist/peer_memory.h"
#include "lockstep/dist/peer_wait.h"
#include "lockstep/dist/queued_group.h"

namespace lockstep::dist {

class PeerGroup final : public QueuedGroup {
 public:
  // `region` holds the control block and stays mapped as long as the group. Returns once all ranks
  // have come, within `timeout`.
  PeerGroup(std::string_view kind, int rank, int size, std::chrono::nanoseconds timeout,
            std::shared_ptr<void> region, std::unique_ptr<PeerMemory> memory);
  // Works that are not done make the group abort: their owner has gone away.
  ~PeerGroup() override;

  std::string_view kind() const override { return kind_; }
  std::shared_ptr<Storage> allocate(std::size_t bytes) override;

 protected:
  void execute(const Collective& collective, std::uint64_t sequence) override;
  void abort_peers(const std::string& reason) noexcept override { wait_.abort(reason); }

 private:
  void meet_all_ranks();
  void execute_alone(const Collective& c);
  // Exchanges and compares headers; see Note [meeting].
  void exchange_headers(const Collective& c, bool small, RunningWork& work);
  void compare_headers(const RunningWork& work, bool all_there) const;
  void fill_header(HeaderSlot& slot, const Collective& c, bool small);
  // All addresses that the collective needs, or false if a rank's memory is out of reach.
  bool reach_peers(const Collective& c, std::uint64_t sequence);

  // peer_collectives.cpp. Chunks are elements [begin, begin+len) of the fingerprint's count.
  void run_direct(const Collective& c, RunningWork& work);
  void run_staged(const Collective& c, RunningWork& work);
  void run_staged_slices(const Collective& c, RunningWork& work);
  void expose(const Collective& c, unsigned char* to, std::int64_t begin, std::int64_t len) const;
  // `exposed[p]` holds what rank p exposed: the chunk alone, or with `whole` all of its input.
  void consume(const Collective& c, std::span<const void* const> exposed, std::int64_t begin,
               std::int64_t len, bool whole) const;
  void advance();
  void await_clock(std::uint64_t target, RunningWork& work);

  // peer_mailbox.cpp
  void send_message(const Collective& c, RunningWork& work);
  void receive_message(const Collective& c, RunningWork& work);

  std::string_view kind_;
  std::shared_ptr<void> region_;
  ControlBlock block_;
  PeerWait wait_;
  std::unique_ptr<PeerMemory> memory_;
  std::uint64_t clock_ = 0;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

}  // namespace lockstep::dist
