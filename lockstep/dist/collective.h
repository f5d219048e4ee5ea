// Collective: one call of a process group as data, for queues and transports.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/dist/process_group.h"

namespace lockstep::dist {

enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kBarrier,
  kSend,
  kRecv
};

struct Collective {
  CollectiveKind kind = CollectiveKind::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  int peer = 0;  // root of a broadcast, the other side of send and recv
  Tag tag;
  ConstSpan input;
  Span output;
};

// What ranks compare before they exchange data; plain bytes for shared memory and the wire.
struct Fingerprint {
  std::int64_t count = 0;  // elements of all_reduce, broadcast, send, recv; per rank of the others
  std::int64_t step = -1;
  std::int32_t bucket = -1;
  CollectiveKind kind = CollectiveKind::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kF32;
  std::uint8_t unused = 0;
  std::int32_t root = 0;
  std::int32_t unused_too = 0;

  bool operator==(const Fingerprint&) const = default;
};
static_assert(sizeof(Fingerprint) == 32);

Fingerprint fingerprint(const Collective& collective);

// "all_reduce sum of 100 f32 (step 3, bucket 0)".
std::string describe(const Fingerprint& print);
std::string describe(const Collective& collective);

// Throws Error where spans, root or peer make no sense in a group of this size.
void check_collective(const Collective& collective, int rank, int size);

}  // namespace lockstep::dist
