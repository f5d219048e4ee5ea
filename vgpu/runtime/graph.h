// Graphs ready to run: every branch beside the first has a stream of its own.
#pragma once

#include <memory>
#include <vector>

#include "vgpu/runtime/capture.h"
#include "vgpu/runtime/stream.h"

struct CUgraph_st {
  vgpu::Graph graph;
};

struct CUgraphExec_st {
  vgpu::Graph graph;
  std::vector<std::unique_ptr<CUstream_st>>
      branches;                        // the first is null: the stream of the launch
  std::shared_ptr<vgpu::Signal> last;  // the end of the last launch
  vgpu::VectorClock last_clock;
};
