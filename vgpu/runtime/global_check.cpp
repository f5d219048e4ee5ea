#include "vgpu/runtime/global_check.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "vgpu/runtime/peer.h"
#include "vgpu/runtime/settings.h"

namespace vgpu {
namespace {

enum BlockAccess : std::uint16_t { kSeen = 1, kByAtomic = 2 };

// Blocks that are over for a block, or for an address that blocks meet at.
using BlockSet = std::vector<bool>;
struct BlockOrder {
  std::unordered_map<std::uint32_t, BlockSet> of_block;
  std::unordered_map<std::uintptr_t, BlockSet> of_address;
};
thread_local BlockOrder block_order;

void merge(BlockSet& into, const BlockSet& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i]) into[i] = true;
}

bool is_over(std::uint32_t block, std::uint32_t for_block) {
  const auto known = block_order.of_block.find(for_block);
  return known != block_order.of_block.end() && block < known->second.size() &&
         known->second[block];
}

bool races(const ByteUse& earlier, const Thread& t, bool atomic) {
  if (earlier.launch != running_kernel.id || !(earlier.flags & kSeen)) return false;
  if (atomic && (earlier.flags & kByAtomic)) return false;
  if (earlier.block != t.block->number()) return !is_over(earlier.block, t.block->number());
  if (earlier.thread == t.index || earlier.epoch < t.block->epoch()) return false;
  // Within a warp __syncwarp orders memory too; its count is not kept per byte.
  return earlier.thread / kWarpSize != t.index / kWarpSize;
}

std::string other(const ByteUse& earlier, const Thread& t, bool wrote) {
  const std::string what = wrote ? " wrote" : " read";
  if (earlier.block == t.block->number())
    return "thread number " + std::to_string(earlier.thread) + " of the block" + what +
           " with no barrier in between";
  return "thread number " + std::to_string(earlier.thread) + " of block number " +
         std::to_string(earlier.block) + what + " in the same launch";
}

const char* verb(AccessKind kind) {
  return kind == AccessKind::kRead ? "read" : kind == AccessKind::kWrite ? "write" : "atomic";
}

template <class Where>
void check_launch(Thread& t, Allocation& a, std::size_t offset, std::size_t bytes, AccessKind kind,
                  const Where& where) {
  if (a.writes.empty()) {
    a.writes = ZeroedArray<ByteUse>(a.bytes);
    a.reads = ZeroedArray<ByteUse>(a.bytes);
  }
  const bool atomic = is_atomic(kind), write = writes(kind);
  const ByteUse now{running_kernel.id, t.block->number(), t.block->epoch(),
                    static_cast<std::uint16_t>(t.index),
                    static_cast<std::uint16_t>(kSeen | (atomic ? kByAtomic : 0))};
  for (std::size_t i = offset; i < offset + bytes; ++i) {
    const bool with_write = races(a.writes[i], t, atomic);
    if (with_write || (write && races(a.reads[i], t, atomic))) {
      const ByteUse& earlier = with_write ? a.writes[i] : a.reads[i];
      const bool same_block = earlier.block == t.block->number();
      if (settings().checks_for(same_block ? FaultKind::kSharedRace : FaultKind::kBlockRace))
        t.block->fault(same_block ? FaultKind::kSharedRace : FaultKind::kBlockRace,
                       where() + ", which " + other(earlier, t, with_write), t);
    }
    if (write)
      a.writes[i] = now;
    else if (!races(a.reads[i], t, false))
      a.reads[i] = now;
  }
}

}  // namespace

void forget_block_order() { block_order = {}; }

void order_blocks(Thread& t, std::uintptr_t address) {
  const std::uint32_t block = t.block->number();
  BlockSet& own = block_order.of_block[block];
  if (own.size() <= block) own.resize(block + 1);
  own[block] = true;
  BlockSet& met = block_order.of_address[address];
  merge(met, own);
  merge(own, met);
}

std::string note_operation(Allocation& a, std::size_t offset, std::size_t bytes, bool write,
                           bool atomic, std::uint32_t id, const VectorClock& known) {
  if (bytes == 0) return "";
  // Neighbours mostly have the same history.
  std::uint32_t asked = 0;
  bool answer = false;
  const auto is_before = [&](std::uint32_t earlier) {
    if (earlier != asked) answer = is_ordered(asked = earlier, known);
    return answer;
  };
  for (std::size_t g = offset / kGranule; g <= (offset + bytes - 1) / kGranule; ++g) {
    GranuleUse& use = a.granules[g];
    std::uint32_t clash = 0;
    if (use.write != 0 && use.write != id && !(atomic && use.atomic_write) && !is_before(use.write))
      clash = use.write;
    if (write)
      for (const std::uint32_t read : use.reads)
        if (clash == 0 && read != 0 && read != id && !is_before(read)) clash = read;
    if (clash != 0 && settings().checks_for(FaultKind::kStreamRace)) {
      const Operation mine = operation_by_id(id), theirs = operation_by_id(clash);
      return mine.name + " on stream " + std::to_string(mine.stream) + " and " + theirs.name +
             " on stream " + std::to_string(theirs.stream) +
             ", which nothing orders, are both at " + a.describe(a.begin + g * kGranule) +
             (write ? "; the first writes" : "; the second writes");
    }
    if (write) {
      use.write = id;
      use.atomic_write = atomic;
      use.reads = {};
    } else if (!atomic && std::find(use.reads.begin(), use.reads.end(), id) == use.reads.end()) {
      // In place of one that is over, else of the oldest.
      auto slot = std::find_if(use.reads.begin(), use.reads.end(),
                               [&](std::uint32_t read) { return read == 0 || is_before(read); });
      if (slot == use.reads.end()) slot = std::min_element(use.reads.begin(), use.reads.end());
      *slot = id;
    }
  }
  return "";
}

void check_global(Thread& t, std::uintptr_t address, std::size_t bytes, AccessKind kind) {
  const Settings& s = settings();
  Allocation* const a = Arena::instance().find(address);
  const auto where = [&] {
    return std::string(verb(kind)) + " of " + std::to_string(bytes) + " bytes at " +
           a->describe(address);
  };
  if (a == nullptr)
    t.block->fault(FaultKind::kOutOfBounds,
                   std::string(verb(kind)) + " of " + std::to_string(bytes) +
                       " bytes at an address that was never allocated",
                   t);
  if (a->freed) t.block->fault(FaultKind::kUseAfterFree, where(), t);
  if (!may_access(t.block->device(), a->device))
    t.block->fault(FaultKind::kOutOfBounds, where() + ", which is no peer", t);
  const std::size_t offset = address - a->begin;
  if (offset >= a->bytes || bytes > a->bytes - offset) {
    if (!s.checks_for(FaultKind::kOutOfBounds)) return;
    t.block->fault(FaultKind::kOutOfBounds, where(), t);
  }
  const bool write = writes(kind), atomic = is_atomic(kind);
  if (kind != AccessKind::kWrite && s.checks_for(FaultKind::kUninitialized))
    for (std::size_t i = 0; i < bytes; ++i)
      if (a->written[offset + i] == 0) t.block->fault(FaultKind::kUninitialized, where(), t);
  if (write) std::fill_n(a->written.begin() + offset, bytes, std::uint8_t{1});
  if (atomic) order_blocks(t, address);
  if (s.checks_for(FaultKind::kBlockRace) || s.checks_for(FaultKind::kSharedRace))
    check_launch(t, *a, offset, bytes, kind, where);
  if (!s.checks_for(FaultKind::kStreamRace)) return;
  const std::string race =
      note_operation(*a, offset, bytes, write, atomic, running_kernel.id, *running_kernel.known);
  if (!race.empty()) t.block->fault(FaultKind::kStreamRace, race, t);
}

}  // namespace vgpu
