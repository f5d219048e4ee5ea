#include "lockstep/dist/bucket_plan.h"

#include <algorithm>
#include <map>

#include "lockstep/core/check.h"

namespace lockstep::dist {
namespace {

struct OpenBucket {
  std::vector<std::size_t> members;
  std::size_t bytes = 0;
  std::size_t last_position = 0;
};

}  // namespace

std::vector<std::vector<std::size_t>> plan_buckets(std::span<const std::size_t> bytes,
                                                   std::span<const DType> dtypes,
                                                   const BucketCaps& caps,
                                                   std::span<const std::size_t> order) {
  LOCKSTEP_CHECK(bytes.size() == dtypes.size() && order.size() == bytes.size(),
                 "plan_buckets: {} sizes, {} dtypes and an order of {}", bytes.size(),
                 dtypes.size(), order.size());
  std::vector<bool> seen(bytes.size(), false);
  std::map<DType, OpenBucket> open;
  std::map<DType, bool> had_first;
  std::vector<OpenBucket> closed;
  for (std::size_t position = 0; position < order.size(); ++position) {
    const std::size_t i = order[position];
    LOCKSTEP_CHECK(i < bytes.size() && !seen[i],
                   "plan_buckets: the order names parameter {} twice or outside of {}", i,
                   bytes.size());
    seen[i] = true;
    OpenBucket& bucket = open[dtypes[i]];
    bucket.members.push_back(i);
    bucket.bytes += bytes[i];
    bucket.last_position = position;
    bool& first_is_closed = had_first[dtypes[i]];
    if (bucket.bytes < (first_is_closed ? caps.bytes : caps.first_bytes)) continue;
    first_is_closed = true;
    closed.push_back(std::move(bucket));
    bucket = {};
  }
  for (auto& [dtype, bucket] : open)
    if (!bucket.members.empty()) closed.push_back(std::move(bucket));
  std::sort(closed.begin(), closed.end(), [](const OpenBucket& a, const OpenBucket& b) {
    return a.last_position < b.last_position;
  });
  std::vector<std::vector<std::size_t>> plan;
  plan.reserve(closed.size());
  for (OpenBucket& bucket : closed) plan.push_back(std::move(bucket.members));
  return plan;
}

std::vector<std::size_t> reverse_order(std::size_t count) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = count - 1 - i;
  return order;
}

}  // namespace lockstep::dist
