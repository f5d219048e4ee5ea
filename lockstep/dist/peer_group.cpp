#include "lockstep/dist/peer_group.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "lockstep/core/check.h"

namespace lockstep::dist {
namespace {

std::size_t exposed_bytes(const Collective& c) {
  return c.kind == CollectiveKind::kBroadcast ? c.output.bytes() : c.input.bytes();
}

}  // namespace

PeerGroup::PeerGroup(std::string_view kind, int rank, int size, std::chrono::nanoseconds timeout,
                     std::shared_ptr<void> region, std::unique_ptr<PeerMemory> memory)
    : QueuedGroup(rank, size, timeout),
      kind_(kind),
      region_(std::move(region)),
      block_(region_.get(), size),
      wait_(block_, rank, size, timeout),
      memory_(std::move(memory)),
      inputs_(static_cast<std::size_t>(size)),
      outputs_(static_cast<std::size_t>(size)) {
  try {
    meet_all_ranks();
  } catch (const std::exception& error) {
    wait_.abort(error.what());
    throw;
  }
}

PeerGroup::~PeerGroup() {
  if (unfinished_works() > 0) abort("its process group was destroyed with works unfinished");
  finish_works();
  block_.rank(rank()).state.store(static_cast<std::uint32_t>(RankState::kLeft),
                                  std::memory_order_seq_cst);
  wait_.ring_all();
}

void PeerGroup::meet_all_ranks() {
  RankBlock& self = block_.rank(rank());
  const auto present = static_cast<std::uint32_t>(RankState::kPresent);
  LOCKSTEP_CHECK_AS(CommError, self.state.exchange(present) == 0,
                    "{} group: rank {} has been taken already", kind_, rank());
  // A barrier of its own kind: number 0 is never a collective's, so the clock is used.
  const Collective entry{};
  RunningWork work{&entry, 0, {}};
  wait_.announce_cores();
  advance();
  await_clock(clock_, work);
  wait_.know_peers();
}

std::shared_ptr<Storage> PeerGroup::allocate(std::size_t bytes) { return memory_->allocate(bytes); }

void PeerGroup::execute(const Collective& c, std::uint64_t sequence) {
  RunningWork work{&c, sequence, {}};
  if (c.kind == CollectiveKind::kSend) return send_message(c, work);
  if (c.kind == CollectiveKind::kRecv) return receive_message(c, work);
  if (size() == 1) return execute_alone(c);

  const bool small = exposed_bytes(c) <= kInlineBytes;
  exchange_headers(c, small, work);
  const std::int64_t count = fingerprint(c).count;
  if (c.kind == CollectiveKind::kBarrier || count == 0) return;
  if (small) {
    for (int p = 0; p < size(); ++p)
      inputs_[static_cast<std::size_t>(p)] = block_.header(p, sequence).payload;
    return consume(c, inputs_, 0, count, true);
  }
  if (reach_peers(c, sequence))
    run_direct(c, work);
  else if (c.kind == CollectiveKind::kAllReduce && size() > 2)
    run_staged_slices(c, work);
  else
    run_staged(c, work);
}

void PeerGroup::execute_alone(const Collective& c) {
  const bool moves = c.kind == CollectiveKind::kAllReduce || c.kind == CollectiveKind::kAllGather ||
                     c.kind == CollectiveKind::kReduceScatter;
  if (moves && c.output.count > 0) std::memmove(c.output.data, c.input.data, c.output.bytes());
}

void PeerGroup::fill_header(HeaderSlot& slot, const Collective& c, bool small) {
  slot.print = fingerprint(c);
  if (small) {
    if (c.input.count > 0) std::memcpy(slot.payload, c.input.data, c.input.bytes());
    return;
  }
  LargeHeader addresses;
  addresses.input = memory_->address_of(c.input.data, c.input.bytes());
  if (c.output.data == c.input.data)
    addresses.output.segment = PeerAddress::kSame;
  else
    addresses.output = memory_->address_of(c.output.data, c.output.bytes());
  std::memcpy(slot.payload, &addresses, sizeof(addresses));
}

void PeerGroup::exchange_headers(const Collective& c, bool small, RunningWork& work) {
  HeaderSlot& slot = block_.header(rank(), work.sequence);
  fill_header(slot, c, small);
  wait_.publish(slot.sequence, work.sequence);
  const auto sequence_of = [&](int p) -> const std::atomic<std::uint64_t>& {
    return block_.header(p, work.sequence).sequence;
  };
  try {
    wait_.await_all(sequence_of, work.sequence, work);
  } catch (const CommError&) {
    // A difference explains more than its consequences.
    compare_headers(work, false);
    throw;
  }
  compare_headers(work, true);
}

void PeerGroup::compare_headers(const RunningWork& work, bool all_there) const {
  const Fingerprint& mine = block_.header(rank(), work.sequence).print;
  for (int p = 0; p < size(); ++p) {
    const HeaderSlot& slot = block_.header(p, work.sequence);
    if (!all_there && slot.sequence.load(std::memory_order_acquire) != work.sequence) continue;
    if (slot.print == mine) [[likely]]
      continue;
    const int low = std::min(p, rank()), high = std::max(p, rank());
    throw CommError(
        fmt::format("collective number {} differs among the ranks: rank {}: {}; rank "
                    "{}: {}",
                    work.sequence, low, describe(block_.header(low, work.sequence).print), high,
                    describe(block_.header(high, work.sequence).print)));
  }
}

bool PeerGroup::reach_peers(const Collective& c, std::uint64_t sequence) {
  const bool broadcast = c.kind == CollectiveKind::kBroadcast;
  const bool writes = c.kind == CollectiveKind::kAllReduce;
  const auto header = [&](int p) -> const LargeHeader& {
    return *reinterpret_cast<const LargeHeader*>(block_.header(p, sequence).payload);
  };
  // First whether all can be reached: a decision that must be the same on every rank.
  for (int p = 0; p < size(); ++p) {
    if (broadcast && p != c.peer) continue;
    if (header(p).input.segment == PeerAddress::kUnreachable) return false;
    if (writes && header(p).output.segment == PeerAddress::kUnreachable) return false;
  }
  for (int p = 0; p < size(); ++p) {
    const auto i = static_cast<std::size_t>(p);
    inputs_[i] = outputs_[i] = nullptr;
    if (broadcast && p != c.peer) continue;
    if (p == rank()) {
      inputs_[i] = c.input.data;
      outputs_[i] = c.output.data;
      continue;
    }
    void* input = memory_->reach(p, header(p).input);
    inputs_[i] = input;
    if (!writes) continue;
    const bool in_place = header(p).output.segment == PeerAddress::kSame;
    outputs_[i] = in_place ? input : memory_->reach(p, header(p).output);
  }
  return true;
}

void PeerGroup::advance() { wait_.publish(block_.rank(rank()).clock, ++clock_); }

void PeerGroup::await_clock(std::uint64_t target, RunningWork& work) {
  const auto clock_of = [&](int p) -> const std::atomic<std::uint64_t>& {
    return block_.rank(p).clock;
  };
  wait_.await_all(clock_of, target, work);
}

}  // namespace lockstep::dist
