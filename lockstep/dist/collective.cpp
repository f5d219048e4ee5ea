#include "lockstep/dist/collective.h"

#include "lockstep/core/check.h"

namespace lockstep::dist {
namespace {

std::string_view kind_name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kBarrier:
      return "barrier";
    case CollectiveKind::kSend:
      return "send";
    case CollectiveKind::kRecv:
      return "recv";
  }
  return "?";
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
}

void check_span(std::string_view name, std::string_view what, const ConstSpan& span) {
  LOCKSTEP_CHECK(span.count >= 0, "{}: the {} has {} elements", name, what, span.count);
  LOCKSTEP_CHECK(span.count == 0 || span.data != nullptr,
                 "{}: the {} has {} elements and no memory", name, what, span.count);
}

void check_overlap(std::string_view name, const ConstSpan& input, const Span& output,
                   const void* allowed) {
  const auto* in = static_cast<const char*>(input.data);
  const auto* out = static_cast<const char*>(output.data);
  if (input.bytes() == 0 || output.bytes() == 0 || in == allowed) return;
  LOCKSTEP_CHECK(in + input.bytes() <= out || out + output.bytes() <= in,
                 "{}: input ({} bytes) and output ({} bytes) overlap in part", name, input.bytes(),
                 output.bytes());
}

}  // namespace

Fingerprint fingerprint(const Collective& c) {
  Fingerprint print;
  print.kind = c.kind;
  print.step = c.tag.step;
  print.bucket = c.tag.bucket;
  if (reduces(c.kind)) print.op = c.op;
  if (c.kind == CollectiveKind::kBroadcast) print.root = c.peer;
  const bool by_output = c.kind == CollectiveKind::kReduceScatter ||
                         c.kind == CollectiveKind::kBroadcast || c.kind == CollectiveKind::kRecv;
  print.count = by_output ? c.output.count : c.input.count;
  print.dtype = by_output ? c.output.dtype : c.input.dtype;
  return print;
}

std::string describe(const Fingerprint& p) {
  std::string text(kind_name(p.kind));
  if (reduces(p.kind)) text += fmt::format(" {}", reduce_op_name(p.op));
  if (p.kind != CollectiveKind::kBarrier) text += fmt::format(" of {} {}", p.count, p.dtype);
  if (p.kind == CollectiveKind::kAllGather || p.kind == CollectiveKind::kReduceScatter)
    text += " per rank";
  if (p.kind == CollectiveKind::kBroadcast) text += fmt::format(" from rank {}", p.root);
  if (p.step >= 0 && p.bucket >= 0)
    text += fmt::format(" (step {}, bucket {})", p.step, p.bucket);
  else if (p.step >= 0)
    text += fmt::format(" (step {})", p.step);
  else if (p.bucket >= 0)
    text += fmt::format(" (bucket {})", p.bucket);
  return text;
}

std::string describe(const Collective& c) {
  std::string text = describe(fingerprint(c));
  if (c.kind == CollectiveKind::kSend) text += fmt::format(" to rank {}", c.peer);
  if (c.kind == CollectiveKind::kRecv) text += fmt::format(" from rank {}", c.peer);
  return text;
}

void check_collective(const Collective& c, int rank, int size) {
  const std::string_view name = kind_name(c.kind);
  check_span(name, "input", c.input);
  check_span(name, "output", c.output);
  const bool both = c.kind == CollectiveKind::kAllReduce || c.kind == CollectiveKind::kAllGather ||
                    c.kind == CollectiveKind::kReduceScatter;
  if (both)
    LOCKSTEP_CHECK(c.input.dtype == c.output.dtype, "{}: the input is {}, the output is {}", name,
                   c.input.dtype, c.output.dtype);
  switch (c.kind) {
    case CollectiveKind::kAllReduce:
      LOCKSTEP_CHECK(c.input.count == c.output.count,
                     "all_reduce: the input has {} elements, the output {}", c.input.count,
                     c.output.count);
      check_overlap(name, c.input, c.output, c.output.data);
      break;
    case CollectiveKind::kBroadcast:
      LOCKSTEP_CHECK(c.peer >= 0 && c.peer < size, "broadcast: root {} in a group of {} ranks",
                     c.peer, size);
      break;
    case CollectiveKind::kAllGather:
      LOCKSTEP_CHECK(c.output.count == c.input.count * size,
                     "all_gather: {} ranks give {} elements each, but the output has {}", size,
                     c.input.count, c.output.count);
      // In place is where the input is this rank's block of the output.
      check_overlap(name, c.input, c.output,
                    static_cast<const char*>(c.output.data) +
                        static_cast<std::size_t>(rank) * c.input.bytes());
      break;
    case CollectiveKind::kReduceScatter:
      LOCKSTEP_CHECK(c.input.count == c.output.count * size,
                     "reduce_scatter: {} ranks get {} elements each, but the input has {}", size,
                     c.output.count, c.input.count);
      check_overlap(name, c.input, c.output, nullptr);
      break;
    case CollectiveKind::kSend:
    case CollectiveKind::kRecv:
      LOCKSTEP_CHECK(c.peer >= 0 && c.peer < size && c.peer != rank,
                     "{}: rank {} in a group of {} ranks has no peer {}", name, rank, size, c.peer);
      break;
    case CollectiveKind::kBarrier:
      break;
  }
}

}  // namespace lockstep::dist
