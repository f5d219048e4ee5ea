#include "vgpu/runtime/counting.h"

#include "vgpu/include/vgpu/counters.h"

namespace vgpu {

Counting& counting() {
  static auto* the = new Counting;
  return *the;
}

Counters counters() {
  const Counting& c = counting();
  return {c.launches, c.allocations, c.host_waits, c.copies};
}

}  // namespace vgpu
