// Messages between two ranks of a PeerGroup: cells of a mailbox in turn. A send is done once the
// receiver has taken the last cell.
#include <algorithm>
#include <cstring>

#include "lockstep/core/check.h"
#include "lockstep/dist/peer_group.h"

namespace lockstep::dist {
namespace {

// At least one cell, so that empty messages are compared too.
std::int64_t cells_of(std::size_t bytes) {
  return std::max<std::int64_t>(1,
                                static_cast<std::int64_t>((bytes + kMailBytes - 1) / kMailBytes));
}

std::size_t cell_bytes(std::size_t bytes, std::int64_t k) {
  const std::size_t begin = static_cast<std::size_t>(k) * kMailBytes;
  return begin >= bytes ? 0 : std::min(kMailBytes, bytes - begin);
}

}  // namespace

void PeerGroup::send_message(const Collective& c, RunningWork& work) {
  Mailbox& box = block_.mailbox(rank(), c.peer);
  const auto read = [&](int) -> const std::atomic<std::uint64_t>& { return box.read; };
  const std::size_t bytes = c.input.bytes();
  std::uint64_t written = box.written.load(std::memory_order_relaxed);
  box.print = fingerprint(c);
  for (std::int64_t k = 0; k < cells_of(bytes); ++k) {
    if (written >= kMailCells) wait_.await_one(c.peer, read, written - kMailCells + 1, work);
    if (const std::size_t n = cell_bytes(bytes, k))
      std::memcpy(box.cells[written % kMailCells],
                  static_cast<const unsigned char*>(c.input.data) + k * kMailBytes, n);
    wait_.publish(box.written, ++written);
  }
  wait_.await_one(c.peer, read, written, work);
}

void PeerGroup::receive_message(const Collective& c, RunningWork& work) {
  Mailbox& box = block_.mailbox(c.peer, rank());
  const auto written = [&](int) -> const std::atomic<std::uint64_t>& { return box.written; };
  const std::size_t bytes = c.output.bytes();
  std::uint64_t read = box.read.load(std::memory_order_relaxed);
  for (std::int64_t k = 0; k < cells_of(bytes); ++k) {
    wait_.await_one(c.peer, written, read + 1, work);
    if (k == 0) {
      Fingerprint sent = box.print;
      sent.kind = CollectiveKind::kRecv;
      LOCKSTEP_CHECK_AS(CommError, sent == fingerprint(c),
                        "message number {} differs: rank {}: {}; rank {}: {}", work.sequence,
                        c.peer, describe(box.print), rank(), describe(fingerprint(c)));
    }
    if (const std::size_t n = cell_bytes(bytes, k))
      std::memcpy(static_cast<unsigned char*>(c.output.data) + k * kMailBytes,
                  box.cells[read % kMailCells], n);
    wait_.publish(box.read, ++read);
  }
}

}  // namespace lockstep::dist
