// What the ranks of a communicator share: a file in memory, whether they are threads or processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "vgpu/include/nccl.h"

namespace vgpu {

inline constexpr int kMostRanks = 64;
inline constexpr std::size_t kChunk = std::size_t{256} << 10;  // of a collective, per rank
inline constexpr std::size_t kParcel = std::size_t{64} << 10;  // of a send

enum class CollectiveKind : std::int32_t {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter
};

// The arguments that all ranks must agree on.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::int32_t type = 0, op = 0, root = 0;
  std::uint64_t count = 0;

  bool operator==(const CollectiveCall&) const = default;
  std::string describe() const;
};

// Chunk after chunk from one rank to another: full where written > read.
struct Mailbox {
  std::atomic<std::uint64_t> written, read;
  std::uint64_t total;  // bytes of the whole message
  char data[kParcel];
};

struct RankState {
  std::atomic<int> process;            // 0: has not come yet
  std::atomic<std::uint64_t> started;  // the process's start, as process numbers are used again
  std::atomic<int> device;             // physical, from 1; 0: not known yet
  std::atomic<bool> joined, gone;      // gone: destroyed or aborted
  std::atomic<std::uint64_t> phase;    // counts the meetings that the rank came to
  CollectiveCall call;
};

class Rendezvous {
 public:
  static ncclUniqueId new_id();

  // Null, and `error`, where the file cannot be made, another world size came first, or the rank or
  // the device is taken. The file is removed once all ranks are there.
  static Rendezvous* enter(const ncclUniqueId& id, int ranks, int rank, int device,
                           std::string& error);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  int ranks() const { return ranks_; }
  int rank() const { return rank_; }
  bool all_joined() const;
  RankState& state(int rank) const { return states_[rank]; }
  char* chunk(int rank) const { return chunks_ + static_cast<std::size_t>(rank) * kChunk; }
  Mailbox& mailbox(int from, int to) const { return mailboxes_[from * ranks_ + to]; }
  // The first rank whose process has ended or that has left the communicator, else -1.
  int lost_rank() const;
  void leave();
  void remove_file();

 private:
  Rendezvous(std::string path, void* memory, std::size_t bytes, int ranks, int rank);
  std::string path_;
  void* memory_;
  std::size_t bytes_;
  int ranks_, rank_;
  RankState* states_;
  char* chunks_;
  Mailbox* mailboxes_;
};

}  // namespace vgpu
