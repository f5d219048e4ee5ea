#include "vgpu/nccl/exchange.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "vgpu/nccl/reduce.h"
#include "vgpu/runtime/execution_lock.h"
#include "vgpu/runtime/fault.h"

namespace vgpu {
namespace {

const char* at(const void* data, std::size_t offset) {
  return static_cast<const char*>(data) + offset;
}
char* at(void* data, std::size_t offset) { return static_cast<char*>(data) + offset; }

// What NCCL would hang or compute nonsense on: the ranks ask for different things.
void agree(Communicator& c, const CollectiveCall& call) {
  Rendezvous& m = *c.meeting;
  m.state(m.rank()).call = call;
  c.meet();
  std::string text;
  for (int r = 0; r < m.ranks(); ++r)
    if (text.empty() && !(m.state(r).call == call))
      text = "rank " + std::to_string(m.rank()) + " called " + call.describe() + ", rank " +
             std::to_string(r) + " called " + m.state(r).call.describe();
  c.meet();  // nobody's call is overwritten before all have seen it
  if (text.empty()) return;
  c.fail(ncclInvalidUsage, text);
  c.async_error = ncclInvalidUsage;
  throw KernelFault(FaultKind::kLibrary, text);
}

// The bytes of every rank, chunk by chunk: `use` gets the chunks of all ranks.
template <class Use>
void share(Communicator& c, const void* from, std::size_t bytes, const Use& use) {
  Rendezvous& m = *c.meeting;
  for (std::size_t offset = 0; offset < bytes; offset += kChunk) {
    const std::size_t n = std::min(kChunk, bytes - offset);
    if (from != nullptr) std::memcpy(m.chunk(m.rank()), at(from, offset), n);
    c.meet();
    use(offset, n);
    c.meet();
  }
}

void collective(Communicator& c, const Transfer& t) {
  Rendezvous& m = *c.meeting;
  const auto type = static_cast<ncclDataType_t>(t.call.type);
  const auto op = static_cast<ncclRedOp_t>(t.call.op);
  const std::size_t element = element_bytes(type), bytes = t.call.count * element;
  const int ranks = m.ranks(), rank = m.rank(), root = t.call.root;
  std::vector<const void*> chunks;
  for (int r = 0; r < ranks; ++r) chunks.push_back(m.chunk(r));
  const auto reduce = [&](std::size_t offset, std::size_t n) {
    reduce_ranks(chunks, at(t.to, offset), n / element, type, op);
  };
  agree(c, t.call);
  switch (t.call.kind) {
    case CollectiveKind::kAllReduce:
      share(c, t.from, bytes, reduce);
      break;
    case CollectiveKind::kReduce:
      share(c, t.from, bytes, [&](std::size_t offset, std::size_t n) {
        if (rank == root) reduce(offset, n);
      });
      break;
    case CollectiveKind::kBroadcast:
      share(c, rank == root ? t.from : nullptr, bytes, [&](std::size_t offset, std::size_t n) {
        std::memcpy(at(t.to, offset), m.chunk(root), n);
      });
      break;
    case CollectiveKind::kAllGather:
      share(c, t.from, bytes, [&](std::size_t offset, std::size_t n) {
        for (int r = 0; r < ranks; ++r)
          std::memcpy(at(t.to, static_cast<std::size_t>(r) * bytes + offset), m.chunk(r), n);
      });
      break;
    case CollectiveKind::kReduceScatter:
      for (int r = 0; r < ranks; ++r)
        share(c, at(t.from, static_cast<std::size_t>(r) * bytes), bytes,
              [&](std::size_t offset, std::size_t n) {
                if (rank == r) reduce(offset, n);
              });
      break;
  }
}

// One send or receive on its way.
struct Message {
  const Transfer* transfer;
  std::size_t done = 0;
  std::size_t bytes() const {
    return transfer->kind == Transfer::Kind::kSend ? transfer->source.bytes
                                                   : transfer->target.bytes;
  }
};

// Moves one parcel if the mailbox allows.
bool advance(Communicator& c, Message& message) {
  Rendezvous& m = *c.meeting;
  const Transfer& t = *message.transfer;
  const std::size_t n = std::min(kParcel, message.bytes() - message.done);
  if (t.kind == Transfer::Kind::kSend) {
    Mailbox& box = m.mailbox(m.rank(), t.peer);
    if (box.written != box.read) return false;
    box.total = message.bytes();
    std::memcpy(box.data, at(t.from, message.done), n);
    ++box.written;
  } else {
    Mailbox& box = m.mailbox(t.peer, m.rank());
    if (box.written == box.read) return false;
    if (box.total != message.bytes())
      throw KernelFault(FaultKind::kLibrary, "rank " + std::to_string(m.rank()) + " receives " +
                                                 std::to_string(message.bytes()) + " bytes, rank " +
                                                 std::to_string(t.peer) + " sends " +
                                                 std::to_string(box.total));
    std::memcpy(at(t.to, message.done), box.data, n);
    ++box.read;
  }
  message.done += n;
  return true;
}

// Messages between the same two ranks keep their order; all others go on side by side.
void exchange(Communicator& c, const std::vector<Transfer>& transfers) {
  std::vector<Message> left;
  for (const Transfer& t : transfers) left.push_back({&t});
  std::erase_if(left, [](const Message& x) { return x.bytes() == 0; });
  c.wait_until([&] {
    bool moved = true;
    while (moved) {
      moved = false;
      std::set<std::pair<Transfer::Kind, int>> busy;
      for (Message& x : left)
        if (busy.emplace(x.transfer->kind, x.transfer->peer).second) moved = advance(c, x) || moved;
      std::erase_if(left, [](const Message& x) { return x.done == x.bytes(); });
    }
    return left.empty();
  });
  // As with NCCL the memory is free again when the operation is over, not when the data has come.
}

}  // namespace

const char* Transfer::name() const {
  if (kind == Kind::kSend) return "ncclSend";
  if (kind == Kind::kReceive) return "ncclRecv";
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
      return "ncclAllReduce";
    case CollectiveKind::kReduce:
      return "ncclReduce";
    case CollectiveKind::kBroadcast:
      return "ncclBroadcast";
    case CollectiveKind::kAllGather:
      return "ncclAllGather";
    case CollectiveKind::kReduceScatter:
      return "ncclReduceScatter";
  }
  return "";
}

void carry_out(Communicator& c, const std::vector<Transfer>& transfers, std::uint32_t id,
               const VectorClock& known) {
  Communicator::Running running(c);
  if (c.aborted) return;
  if (c.destroyed)
    throw KernelFault(FaultKind::kLibrary, std::string(transfers.front().name()) +
                                               " of a communicator that was destroyed");
  {
    ExecutionLock lock;
    for (const Transfer& t : transfers) {
      if (t.from != nullptr) note_read(t.source, t.name(), id, known);
      if (t.to != nullptr) note_write(t.target, t.name(), id, known);
    }
  }
  try {
    if (transfers.front().kind == Transfer::Kind::kCollective)
      collective(c, transfers.front());
    else
      exchange(c, transfers);
  } catch (const CommunicatorAborted&) {
    return;
  }
  ExecutionLock lock;
  for (const Transfer& t : transfers)
    if (t.to != nullptr) mark_written(t.target);
}

}  // namespace vgpu
