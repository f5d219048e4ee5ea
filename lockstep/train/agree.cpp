#include "lockstep/train/agree.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "lockstep/core/check.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/train/plain_nan.h"

namespace lockstep::train {

Vote vote_from_name(std::string_view name) {
  if (name == "any") return Vote::kAny;
  if (name == "all") return Vote::kAll;
  if (name == "rank0") return Vote::kRank0;
  throw Error(fmt::format("vote: expected any, all or rank0 but got '{}'", name));
}

int Agreement::rank() const { return group_ ? group_->rank() : 0; }
int Agreement::size() const { return group_ ? group_->size() : 1; }

bool Agreement::decide(bool mine, Vote vote) const {
  if (!group_) return mine;
  std::int32_t v = mine ? 1 : 0;
  switch (vote) {
    case Vote::kAny:
      group_->all_reduce_sync(dist::span_of(&v, 1), dist::ReduceOp::kMax);
      break;
    case Vote::kAll:
      group_->all_reduce_sync(dist::span_of(&v, 1), dist::ReduceOp::kMin);
      break;
    case Vote::kRank0:
      group_->broadcast(dist::span_of(&v, 1), 0)->wait();
      break;
  }
  return v != 0;
}

Agreed Agreement::sum(double mine) const {
  if (group_) group_->all_reduce_sync(dist::span_of(&mine, 1));
  return Agreed(mine);
}

Agreed Agreement::mean(double mine) const { return Agreed(sum(mine).value() / size()); }

Agreed Agreement::rank0(double mine) const {
  if (group_) group_->broadcast(dist::span_of(&mine, 1), 0)->wait();
  return Agreed(mine);
}

Agreed Agreement::weighted_mean(double mine, double weight) const {
  // A rank without weight has nothing to say, not even a NaN.
  double sums[2] = {weight == 0 ? 0 : mine * weight, weight};
  if (group_) group_->all_reduce_sync(dist::span_of(sums, 2));
  if (sums[1] == 0) return Agreed(std::numeric_limits<double>::quiet_NaN());
  return Agreed(sums[0] / sums[1]);
}

Agreed Agreement::require_same(std::string_view what, double mine) const {
  if (!group_) return Agreed(mine);
  std::vector<double> all(size());
  group_->all_gather(dist::span_of(&std::as_const(mine), 1), dist::span_of(all))->wait();
  for (int r = 1; r < size(); ++r) {
    if (std::bit_cast<std::uint64_t>(all[r]) == std::bit_cast<std::uint64_t>(all[0])) continue;
    std::string values;
    for (int i = 0; i < size(); ++i)
      values += fmt::format("{}rank {}={}", i == 0 ? "" : ", ", i, plain_nan(all[i]));
    throw Error(fmt::format("{} differs: {}", what, values));
  }
  return Agreed(mine);
}

void Agreement::require_same_text(std::string_view what, const std::string& mine) const {
  if (!group_) return;
  std::vector<std::int64_t> sizes(size());
  const auto bytes = static_cast<std::int64_t>(mine.size());
  group_->all_gather(dist::span_of(&bytes, 1), dist::span_of(sizes))->wait();
  const auto longest = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  if (longest == 0) return;
  std::vector<std::uint8_t> padded(mine.begin(), mine.end()), all(longest * sizes.size());
  padded.resize(longest);
  group_->all_gather(dist::span_of(std::as_const(padded)), dist::span_of(all))->wait();
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(r * longest);
    texts.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(sizes[r]));
  }
  std::string values;
  for (std::size_t r = 0; r < texts.size(); ++r)
    values += fmt::format("{}rank {}={}", r == 0 ? "" : ", ", r, texts[r]);
  for (const std::string& text : texts)
    if (text != texts[0]) throw Error(fmt::format("{} differs: {}", what, values));
}

}  // namespace lockstep::train
