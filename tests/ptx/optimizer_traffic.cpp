// Fused optimizer steps, all f32.
#include "lockstep/kernels/adam_step.h"
#include "lockstep/kernels/lookahead_step.h"
#include "lockstep/kernels/sgd_step.h"
#include "ptx/large_tensors.h"
#include "ptx/traffic_case.h"

namespace lockstep::testing {

std::vector<TrafficCase> optimizer_cases() {
  const auto many = [] { return large_tensor(kF32, {kManyElements}); };
  const double n = kManyElements;
  return {
      {"sgd_step with momentum", 20 * n,
       [=] {
         const kernels::SgdSegment segment{many(), many(), many(), false};
         return [=] { kernels::sgd_step({&segment, 1}, {.lr = 0.1, .momentum = 0.9}); };
       }},
      {"adam_step", 28 * n,
       [=] {
         kernels::AdamSegment segment;
         segment.param = many();
         segment.grad = many();
         segment.exp_avg = many();
         segment.exp_avg_sq = kernels::cast(many(), kF32);
         return [=] { kernels::adam_step({&segment, 1}, {.lr = 0.1}); };
       }},
      {"lookahead_step", 16 * n,
       [=] {
         const kernels::LookaheadSegment segment{many(), many()};
         return [=] { kernels::lookahead_step({&segment, 1}, 0.5); };
       }},
  };
}

}  // namespace lockstep::testing
