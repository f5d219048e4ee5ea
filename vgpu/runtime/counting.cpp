#include "vgpu/runtime/counting.h"

#include <mutex>

#include "vgpu/include/vgpu/counters.h"

namespace vgpu {
namespace {

struct ByName {
  std::mutex mutex;
  std::map<std::string, std::uint64_t> launches;
};
ByName& by_name() {
  static auto* the = new ByName;
  return *the;
}

}  // namespace

Counting& counting() {
  static auto* the = new Counting;
  return *the;
}

void count_launch(const std::string& kernel) {
  ++counting().launches;
  std::lock_guard lock(by_name().mutex);
  ++by_name().launches[kernel];
}

Counters counters() {
  const Counting& c = counting();
  return {c.launches, c.graph_launches, c.allocations, c.host_waits, c.copies, c.bytes_copied};
}

std::map<std::string, std::uint64_t> launches_by_name() {
  std::lock_guard lock(by_name().mutex);
  return by_name().launches;
}

}  // namespace vgpu
