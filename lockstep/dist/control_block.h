// ControlBlock: the memory through which the ranks of one host meet. The layout of one zero-filled
// region that all ranks map; plain words, atomics and bytes only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lockstep/dist/collective.h"

namespace lockstep::dist {

// Note [meeting]
// Every collective begins with an exchange of headers: a rank fills its header slot and then stores
// the sequence number in it; then it waits for the same number in all peers' slots. Two slots in
// turn are enough: who publishes number s has finished s-1, so everyone has published s-1, so
// everyone has finished reading number s-2. Small inputs travel in the slot itself. Within a large
// collective each rank counts its steps on its clock, the same number on every rank.
struct PeerAddress {
  static constexpr std::int32_t kUnreachable = -1;  // memory that only its own rank can reach
  static constexpr std::int32_t kSame = -2;         // of an output: the input's

  std::int32_t segment = kUnreachable;
  std::int32_t fd = -1;     // the owner's descriptor of the segment
  std::int64_t bytes = 0;   // size of the segment
  std::int64_t offset = 0;  // of the data in it; for threads of one process the address itself
};

// In place, all that peers have to read lies in the first cache line of the slot.
struct LargeHeader {
  PeerAddress input;
  PeerAddress output;
};

inline constexpr std::size_t kInlineBytes = 4 << 10;   // most that a header slot carries
inline constexpr std::size_t kStageBytes = 256 << 10;  // a staging slot
inline constexpr int kStageSlots = 4;
inline constexpr std::size_t kMailBytes = 32 << 10;  // a mailbox cell
inline constexpr int kMailCells = 2;
inline constexpr int kCoreWords = 16;

struct alignas(64) HeaderSlot {
  std::atomic<std::uint64_t> sequence;
  Fingerprint print;
  alignas(8) unsigned char payload[kInlineBytes];
};

struct alignas(64) StageSlot {
  unsigned char bytes[kStageBytes];
};

enum class RankState : std::uint32_t { kAbsent = 0, kPresent = 1, kLeft = 2 };

struct RankBlock {
  // Others ring the bell to wake this rank's sleeping threads.
  alignas(64) std::atomic<std::uint32_t> bell;
  std::atomic<std::uint32_t> asleep;
  alignas(64) std::atomic<std::uint64_t> clock;
  alignas(64) std::atomic<std::uint32_t> state;  // RankState
  std::atomic<std::int32_t> pid;                 // 0 where ranks are threads
  std::atomic<std::uint64_t> cores[kCoreWords];  // that the rank may run on, one bit each
};

// Messages from one rank to another: cells in turn, counted by both sides.
struct Mailbox {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> read;
  alignas(64) Fingerprint print;  // of the message that begins in the cell being written
  alignas(64) unsigned char cells[kMailCells][kMailBytes];
};

struct AbortNote {
  alignas(64) std::atomic<std::uint32_t> state;  // 0: none, 1: being written, 2: there
  std::int32_t rank;
  char text[1024];
};

class ControlBlock {
 public:
  struct Head {
    std::uint64_t nonce;
    std::int32_t size;
    alignas(64) std::atomic<std::uint32_t> sleepers;  // threads asleep, of all ranks
    AbortNote abort;
  };

  static std::size_t bytes(int size) {
    const auto n = static_cast<std::size_t>(size);
    return ranks_at() + n * (sizeof(RankBlock) + 2 * sizeof(HeaderSlot) +
                             kStageSlots * sizeof(StageSlot) + n * sizeof(Mailbox));
  }

  ControlBlock(void* base, int size) : base_(static_cast<unsigned char*>(base)), size_(size) {}

  Head& head() const { return *reinterpret_cast<Head*>(base_); }
  RankBlock& rank(int r) const { return reinterpret_cast<RankBlock*>(base_ + ranks_at())[r]; }
  HeaderSlot& header(int r, std::uint64_t sequence) const {
    return reinterpret_cast<HeaderSlot*>(base_ + headers_at())[2 * r + (sequence & 1)];
  }
  StageSlot& stage(int r, std::int64_t chunk) const {
    return reinterpret_cast<StageSlot*>(base_ + stages_at())[kStageSlots * r + chunk % kStageSlots];
  }
  Mailbox& mailbox(int from, int to) const {
    return reinterpret_cast<Mailbox*>(base_ + mailboxes_at())[from * size_ + to];
  }

 private:
  std::size_t n() const { return static_cast<std::size_t>(size_); }
  static constexpr std::size_t ranks_at() { return (sizeof(Head) + 63) / 64 * 64; }
  std::size_t headers_at() const { return ranks_at() + n() * sizeof(RankBlock); }
  std::size_t stages_at() const { return headers_at() + 2 * n() * sizeof(HeaderSlot); }
  std::size_t mailboxes_at() const { return stages_at() + n() * kStageSlots * sizeof(StageSlot); }

  unsigned char* base_;
  int size_;
};

}  // namespace lockstep::dist
