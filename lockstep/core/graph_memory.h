// Memory of work that is captured in a graph: it runs again and again at the same addresses, so
// nothing else may have them while the graph lives. Internal.
#pragma once

#include "lockstep/core/device.h"

namespace lockstep {

class BlockArena;

class GraphMemory {
 public:
  explicit GraphMemory(Device device);
  // Tensors that are still there keep their memory; the rest goes back to the driver.
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  // Until end() all that the thread allocates on the device comes from here. Throws Error where the
  // thread is already between the two.
  void begin();
  void end() noexcept;

 private:
  BlockArena* arena_;
};

}  // namespace lockstep
