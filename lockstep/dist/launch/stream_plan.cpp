#include "lockstep/dist/launch/stream_plan.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "lockstep/core/check.h"

namespace lockstep::dist {
namespace {

int whole_number(std::string_view text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

}  // namespace

StreamPlan StreamPlan::parse(const std::string& flag, const std::string& text) {
  StreamPlan plan;
  const auto streams = [&](std::string_view number) {
    const int value = whole_number(number);
    LOCKSTEP_CHECK(value >= 0 && value <= 3,
                   "{} '{}': wants 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or a list "
                   "RANK:STREAMS,…",
                   flag, text);
    return static_cast<Streams>(value);
  };
  if (text.find(':') == std::string::npos) {
    plan.all_ = streams(text);
    return plan;
  }
  std::string_view rest = text;
  while (true) {
    const std::string_view item = rest.substr(0, rest.find(','));
    const std::size_t colon = item.find(':');
    const int rank = colon == std::string_view::npos ? -1 : whole_number(item.substr(0, colon));
    LOCKSTEP_CHECK(rank >= 0, "{} '{}': '{}' is not of the form RANK:STREAMS", flag, text, item);
    LOCKSTEP_CHECK(plan.ranks_.emplace(rank, streams(item.substr(colon + 1))).second,
                   "{} '{}': rank {} appears twice", flag, text, rank);
    if (item.size() == rest.size()) return plan;
    rest.remove_prefix(item.size() + 1);
  }
}

Streams StreamPlan::of(int local_rank) const {
  const auto it = ranks_.find(local_rank);
  return it == ranks_.end() ? all_ : it->second;
}

bool StreamPlan::any() const {
  return all_ != Streams::kNone || std::ranges::any_of(ranks_, [](const auto& entry) {
           return entry.second != Streams::kNone;
         });
}

}  // namespace lockstep::dist
