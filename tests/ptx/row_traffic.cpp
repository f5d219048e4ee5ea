// Ops on the rows of a matrix.
#include "lockstep/kernels/softmax.h"
#include "ptx/large_tensors.h"
#include "ptx/traffic_case.h"

namespace lockstep::testing {

std::vector<TrafficCase> row_cases() {
  std::vector<TrafficCase> cases;
  for (const std::int64_t columns : {64, 4096}) {
    const std::string name = " bf16, rows of " + std::to_string(columns);
    const Shape shape{kManyElements / columns, columns};
    // A row that is kept in shared memory is written once and read per pass, 2 vectors of 16 bytes
    // to a thread; each sum over the block takes 2 requests of 4 bytes.
    const bool kept = columns > 1024;
    cases.push_back({.name = "softmax_forward" + name,
                     .minimum_bytes = 4.0 * kManyElements,
                     .prepare =
                         [=] {
                           const Tensor x = large_tensor(kBF16, shape);
                           return [=] { kernels::softmax_forward(x, 1); };
                         },
                     .free_wavefronts = kept ? (2 * 4 * 4 + 2 * 2) / (2 * 4 + 2 * 2.0) : 1});
    cases.push_back({.name = "softmax_backward" + name,
                     .minimum_bytes = 6.0 * kManyElements,
                     .prepare =
                         [=] {
                           const Tensor dy = large_tensor(kBF16, shape);
                           const Tensor y = large_tensor(kBF16, shape);
                           return [=] { kernels::softmax_backward(dy, y, 1); };
                         },
                     .free_wavefronts = kept ? (4 * 3 * 4 + 2) / (4 * 3 + 2.0) : 1});
  }
  return cases;
}

}  // namespace lockstep::testing
