#include "lockstep/dist/timeline.h"

#include <algorithm>
#include <chrono>

namespace lockstep::dist {

double StepTiming::exposed_ms() const {
  if (!device_wait) return static_cast<double>(finished - last_gradient) * 1e-6;
  if (!device_wait->begin.query() || !device_wait->end.query()) return 0;
  return static_cast<double>(device_wait->end.since(device_wait->begin).count()) * 1e-6;
}

double StepTiming::communication_ms() const {
  // Works of one group run one after the other, so the intervals don't overlap.
  std::int64_t sum = 0;
  for (const BucketTiming& b : buckets) sum += std::max<std::int64_t>(b.end - b.start, 0);
  return static_cast<double>(sum) * 1e-6;
}

double StepTiming::overlap() const {
  std::int64_t total = 0, hidden = 0;
  for (const BucketTiming& b : buckets) {
    total += std::max<std::int64_t>(b.end - b.start, 0);
    hidden += std::max<std::int64_t>(std::min(b.end, last_gradient) - b.start, 0);
  }
  return total == 0 ? 1.0 : static_cast<double>(hidden) / static_cast<double>(total);
}

std::int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace lockstep::dist
