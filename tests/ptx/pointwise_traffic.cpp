// Element-wise ops, casts and copies.
#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/cast.h"
#include "ptx/large_tensors.h"
#include "ptx/traffic_case.h"

namespace lockstep::testing {

std::vector<TrafficCase> pointwise_cases() {
  std::vector<TrafficCase> cases;
  for (const DType dtype : {kF32, kBF16}) {
    const double bytes = static_cast<double>(dtype_size(dtype)) * kManyElements;
    const std::string name = " " + std::string(dtype_name(dtype));
    const auto one = [&](const char* op, auto run) {
      cases.push_back({op + name, 2 * bytes, [=] {
                         const Tensor x = large_tensor(dtype, {kManyElements});
                         return [=] { run(x); };
                       }});
    };
    const auto two = [&](const char* op, auto run) {
      cases.push_back({op + name, 3 * bytes, [=] {
                         const Tensor a = large_tensor(dtype, {kManyElements});
                         const Tensor b = large_tensor(dtype, {kManyElements});
                         return [=] { run(a, b); };
                       }});
    };
    one("relu", [](const Tensor& x) { kernels::relu(x); });
    one("gelu", [](const Tensor& x) { kernels::gelu(x, kernels::GeluApproximation::kNone); });
    two("add", [](const Tensor& a, const Tensor& b) { kernels::add(a, b); });
    two("gelu_backward", [](const Tensor& dy, const Tensor& x) {
      kernels::gelu_backward(dy, x, kernels::GeluApproximation::kNone);
    });
    // A bias over the last axis: read once from memory, then from the cache.
    cases.push_back({"add of a row" + name, 3 * bytes, [=] {
                       const Tensor x = large_tensor(dtype, {kManyElements / 1024, 1024});
                       const Tensor row = large_tensor(dtype, {1024});
                       return [=] { kernels::add(x, row); };
                     }});
    cases.push_back({"transpose" + name, 2 * bytes, [=] {
                       const Tensor x = large_tensor(dtype, {1024, kManyElements / 1024});
                       return [=] { x.transpose(0, 1).contiguous(); };
                     }});
  }
  cases.push_back({.name = "cast f32 to bf16",
                   .minimum_bytes = 6.0 * kManyElements,
                   .prepare =
                       [] {
                         const Tensor x = large_tensor(kF32, {kManyElements});
                         return [=] { kernels::cast(x, kBF16); };
                       },
                   .bytes_per_access = 12});
  return cases;
}

}  // namespace lockstep::testing
