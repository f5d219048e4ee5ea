// Ops on large tensors, with the memory traffic that each can't do without.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lockstep::testing {

struct TrafficCase {
  std::string name;      // "softmax_forward bf16"
  double minimum_bytes;  // every input read once, every output written once
  // Makes the tensors, and gives back the op on them.
  std::function<std::function<void()>()> prepare;
  // Shared-memory wavefronts per request without a bank conflict: 1 for accesses of 4 bytes, 4 for
  // those of 16.
  double free_wavefronts = 1;
  double bytes_per_access = 16;  // of a thread: 12 where the wider side's 16 are the narrower's 8
  // Bytes over the minimum that the op may move: 1.05 for a stream, 1.15 with a second small pass.
  double most = 1.05;
};

std::vector<TrafficCase> pointwise_cases();
std::vector<TrafficCase> optimizer_cases();
std::vector<TrafficCase> row_cases();

}  // namespace lockstep::testing
