// The algorithms of PeerGroup, after the exchange of headers (Note [meeting]).
//
// direct: all ranks' memory can be reached. all_reduce: each rank reduces its slice out of all
//   inputs and writes it to all outputs: 2(n-1)/n of the data cross between ranks, in two steps.
//   The others read what they need out of the peers' memory.
// staged: chunks pass through staging slots, the next one being copied in while peers are still at
//   the last. all_reduce of two: each reads the other's chunk. all_reduce of more: slices, as
//   above, within each chunk.
#include <algorithm>
#include <cstring>

#include "lockstep/dist/peer_group.h"
#include "lockstep/dist/reduce.h"

namespace lockstep::dist {
namespace {

struct Range {
  std::int64_t begin;
  std::int64_t len;
};

// Slice r of n of `count` elements; borders at multiples of 64 elements, so that no two ranks write
// to one cache line of an aligned buffer.
Range slice_of(std::int64_t count, int r, int n) {
  const std::int64_t per = ((count + n - 1) / n + 63) / 64 * 64;
  const std::int64_t begin = std::min(count, per * r);
  return {begin, std::min(count - begin, per)};
}

const unsigned char* at(const void* base, std::int64_t elements, std::size_t itemsize) {
  return static_cast<const unsigned char*>(base) + static_cast<std::size_t>(elements) * itemsize;
}
unsigned char* at(void* base, std::int64_t elements, std::size_t itemsize) {
  return static_cast<unsigned char*>(base) + static_cast<std::size_t>(elements) * itemsize;
}

}  // namespace

void PeerGroup::expose(const Collective& c, unsigned char* to, std::int64_t begin,
                       std::int64_t len) const {
  const std::size_t item = dtype_size(c.output.dtype);
  const std::size_t bytes = static_cast<std::size_t>(len) * item;
  if (c.kind == CollectiveKind::kReduceScatter) {
    for (int d = 0; d < size(); ++d)
      std::memcpy(at(to, d * len, item), at(c.input.data, d * c.output.count + begin, item), bytes);
  } else if (c.kind != CollectiveKind::kBroadcast || rank() == c.peer) {
    std::memcpy(to, at(c.input.data, begin, item), bytes);
  }
}

void PeerGroup::consume(const Collective& c, std::span<const void* const> exposed,
                        std::int64_t begin, std::int64_t len, bool whole) const {
  const std::size_t item = dtype_size(c.output.dtype);
  const std::size_t bytes = static_cast<std::size_t>(len) * item;
  const std::int64_t from = whole ? begin : 0;
  switch (c.kind) {
    case CollectiveKind::kAllReduce: {
      void* output = at(c.output.data, begin, item);
      reduce_tree(c.op, c.output.dtype, exposed, {&output, 1}, len);
      break;
    }
    case CollectiveKind::kBroadcast:
      if (rank() != c.peer)
        std::memcpy(at(c.output.data, begin, item),
                    at(exposed[static_cast<std::size_t>(c.peer)], from, item), bytes);
      break;
    case CollectiveKind::kAllGather:
      for (int p = 0; p < size(); ++p) {
        unsigned char* to = at(c.output.data, p * c.input.count + begin, item);
        const unsigned char* source = at(exposed[static_cast<std::size_t>(p)], from, item);
        if (to != source) std::memcpy(to, source, bytes);
      }
      break;
    case CollectiveKind::kReduceScatter: {
      const std::int64_t stride = whole ? c.output.count : len;
      std::vector<const void*> blocks(exposed.size());
      for (std::size_t p = 0; p < exposed.size(); ++p)
        blocks[p] = at(exposed[p], rank() * stride + from, item);
      void* output = at(c.output.data, begin, item);
      reduce_tree(c.op, c.output.dtype, blocks, {&output, 1}, len);
      break;
    }
    case CollectiveKind::kBarrier:
    case CollectiveKind::kSend:
    case CollectiveKind::kRecv:
      break;
  }
}

void PeerGroup::run_direct(const Collective& c, RunningWork& work) {
  if (c.kind == CollectiveKind::kAllReduce) {
    const std::size_t item = dtype_size(c.output.dtype);
    const Range mine = slice_of(c.output.count, rank(), size());
    for (const void*& input : inputs_) input = at(input, mine.begin, item);
    for (void*& output : outputs_) output = at(output, mine.begin, item);
    reduce_tree(c.op, c.output.dtype, inputs_, outputs_, mine.len);
  } else {
    consume(c, inputs_, 0, fingerprint(c).count, true);
  }
  // Peers may still be at this rank's memory.
  advance();
  await_clock(clock_, work);
}

void PeerGroup::run_staged(const Collective& c, RunningWork& work) {
  const std::size_t item = dtype_size(c.output.dtype);
  const std::int64_t count = fingerprint(c).count;
  const auto parts =
      static_cast<std::int64_t>(c.kind == CollectiveKind::kReduceScatter ? size() : 1);
  const std::int64_t chunk =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(kStageBytes / item) / parts);
  const std::int64_t chunks = (count + chunk - 1) / chunk;
  const auto len_of = [&](std::int64_t k) { return std::min(chunk, count - k * chunk); };
  const auto expose_chunk = [&](std::int64_t k) {
    expose(c, block_.stage(rank(), k).bytes, k * chunk, len_of(k));
    advance();
  };
  // Slot k+1 was last read for chunk k-3, and who has exposed chunk k-1 has done with k-3.
  const std::uint64_t base = clock_;
  expose_chunk(0);
  for (std::int64_t k = 0; k < chunks; ++k) {
    if (k + 1 < chunks) expose_chunk(k + 1);
    await_clock(base + static_cast<std::uint64_t>(k) + 1, work);
    for (int p = 0; p < size(); ++p)
      inputs_[static_cast<std::size_t>(p)] = block_.stage(p, k).bytes;
    consume(c, inputs_, k * chunk, len_of(k), false);
  }
}

void PeerGroup::run_staged_slices(const Collective& c, RunningWork& work) {
  const std::size_t item = dtype_size(c.output.dtype);
  const std::int64_t count = c.output.count;
  const std::int64_t chunk = static_cast<std::int64_t>(kStageBytes / item);
  const std::int64_t chunks = (count + chunk - 1) / chunk;
  const auto len_of = [&](std::int64_t k) { return std::min(chunk, count - k * chunk); };
  const auto expose_chunk = [&](std::int64_t k) {
    expose(c, block_.stage(rank(), k).bytes, k * chunk, len_of(k));
    advance();
    return clock_;
  };
  // Slot k+1 was last read for chunk k-3, and who has reduced chunk k-1 has done with k-2.
  std::uint64_t exposed = expose_chunk(0);
  for (std::int64_t k = 0; k < chunks; ++k) {
    const std::uint64_t ready = exposed;
    if (k + 1 < chunks) exposed = expose_chunk(k + 1);
    await_clock(ready, work);
    const Range mine = slice_of(len_of(k), rank(), size());
    std::vector<const void*> inputs(inputs_.size());
    for (int p = 0; p < size(); ++p)
      inputs[static_cast<std::size_t>(p)] = at(block_.stage(p, k).bytes, mine.begin, item);
    // Nobody else reads this slice of this slot before the clock says that it is the result.
    void* outputs[2] = {at(block_.stage(rank(), k).bytes, mine.begin, item),
                        at(c.output.data, k * chunk + mine.begin, item)};
    reduce_tree(c.op, c.output.dtype, inputs, outputs, mine.len);
    advance();
    await_clock(clock_, work);
    for (int p = 0; p < size(); ++p) {
      if (p == rank()) continue;
      const Range theirs = slice_of(len_of(k), p, size());
      std::memcpy(at(c.output.data, k * chunk + theirs.begin, item),
                  at(block_.stage(p, k).bytes, theirs.begin, item),
                  static_cast<std::size_t>(theirs.len) * item);
    }
  }
}

}  // namespace lockstep::dist
