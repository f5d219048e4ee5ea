#include "lockstep/dist/verify_parameters.h"

#include <algorithm>
#include <sstream>

#include "lockstep/core/check.h"
#include "lockstep/dist/process_group.h"

namespace lockstep::dist {
namespace {

constexpr std::uint64_t kFnvOffset = 14695981039346656037u;
constexpr std::uint64_t kFnvPrime = 1099511628211u;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::int64_t> gather_number(std::int64_t mine, ProcessGroup& group) {
  std::vector<std::int64_t> all(group.size());
  group.all_gather(span_of(&std::as_const(mine), 1), span_of(all))->wait();
  return all;
}

// Everyone's text, whatever its length.
std::vector<std::string> gather_text(const std::string& mine, ProcessGroup& group) {
  const auto lengths = gather_number(static_cast<std::int64_t>(mine.size()), group);
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<std::uint8_t> padded(longest), all(longest * group.size());
  std::copy(mine.begin(), mine.end(), padded.begin());
  group.all_gather(span_of(padded), span_of(all))->wait();
  std::vector<std::string> texts;
  for (int r = 0; r < group.size(); ++r) {
    const auto begin = all.begin() + r * longest;
    texts.emplace_back(begin, begin + lengths[r]);
  }
  return texts;
}

}  // namespace

std::string describe_parameters(const std::vector<NamedParameter>& parameters) {
  std::string text;
  for (const NamedParameter& p : parameters)
    text += fmt::format("{} {} {}\n", p.name, p.variable.dtype(), p.variable.shape());
  return text;
}

std::string first_difference(const std::string& rank0, int rank, const std::string& other) {
  const auto a = lines_of(rank0), b = lines_of(other);
  if (a.size() != b.size())
    return fmt::format("rank 0 has {} trainable parameters, rank {} has {}", a.size(), rank,
                       b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i])
      return fmt::format("parameter {} is '{}' on rank 0 and '{}' on rank {}", i, a[i], b[i], rank);
  return {};
}

void verify_parameters(const std::vector<NamedParameter>& parameters, ProcessGroup& group) {
  const auto texts = gather_text(describe_parameters(parameters), group);
  for (int r = 1; r < group.size(); ++r) {
    const std::string difference = first_difference(texts[0], r, texts[r]);
    LOCKSTEP_CHECK(difference.empty(), "ddp: the ranks hold different models: {}", difference);
  }
}

std::uint64_t checksum(const std::vector<NamedParameter>& parameters) {
  std::uint64_t hash = kFnvOffset;
  for (const NamedParameter& p : parameters) {
    const Tensor value = p.variable.data().to(kCpu).contiguous();
    const auto* bytes = static_cast<const unsigned char*>(value.data());
    const std::size_t n = value.nbytes();
    for (std::size_t i = 0; i < n; ++i) hash = (hash ^ bytes[i]) * kFnvPrime;
  }
  return hash;
}

void verify_same_values(const std::vector<NamedParameter>& parameters, ProcessGroup& group) {
  const auto sums = gather_number(static_cast<std::int64_t>(checksum(parameters)), group);
  std::vector<int> different;
  for (int r = 1; r < group.size(); ++r)
    if (sums[r] != sums[0]) different.push_back(r);
  LOCKSTEP_CHECK(different.empty(), "ddp: the values on rank {} differ from those on rank 0",
                 fmt::join(different, ", "));
}

}  // namespace lockstep::dist
