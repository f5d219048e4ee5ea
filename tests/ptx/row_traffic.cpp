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
    cases.push_back({"softmax_forward" + name, 4.0 * kManyElements, [=] {
                       const Tensor x = large_tensor(kBF16, shape);
                       return [=] { kernels::softmax_forward(x, 1); };
                     }});
    cases.push_back({"softmax_backward" + name, 6.0 * kManyElements, [=] {
                       const Tensor dy = large_tensor(kBF16, shape);
                       const Tensor y = large_tensor(kBF16, shape);
                       return [=] { kernels::softmax_backward(dy, y, 1); };
                     }});
  }
  return cases;
}

}  // namespace lockstep::testing
