// Element-wise operations, reductions and shape operations against PyTorch, forward and backward,
// in four dtypes and three layouts (tests/reference/make_pointwise.py).
#include <gtest/gtest.h>

#include "autograd/reference_case.h"
#include "lockstep/autograd/ops/activation.h"
#include "lockstep/autograd/ops/arithmetic.h"
#include "lockstep/autograd/ops/choose.h"
#include "lockstep/autograd/ops/elementary.h"
#include "lockstep/autograd/ops/extremum.h"
#include "lockstep/autograd/ops/index.h"
#include "lockstep/autograd/ops/join.h"
#include "lockstep/autograd/ops/moments.h"
#include "lockstep/autograd/ops/power.h"
#include "lockstep/autograd/ops/slice.h"
#include "lockstep/autograd/ops/sum.h"
#include "lockstep/autograd/ops/view.h"
#include "lockstep/kernels/compare.h"

namespace lockstep::testing {
namespace {

using Vars = std::vector<Variable>;

class PointwiseReference : public ::testing::Test {
 protected:
  void check(const std::string& name, int inputs, const Operation& f, double slack = 1) {
    for (const auto& dtype : kFloatingNames) {
      Tolerance tolerance = tolerance_of(dtype);
      tolerance.rtol *= slack;
      tolerance.atol *= slack;
      std::vector<std::string> keys = {"x", "b"};
      keys.resize(static_cast<std::size_t>(inputs));
      check_case(reference_, name + "/" + dtype, keys, tolerance, f);
    }
  }
  Reference reference_{"pointwise"};
};

TEST_F(PointwiseReference, Arithmetic) {
  check("add", 2, [](const Vars& v) { return v[0] + v[1]; });
  check("sub", 2, [](const Vars& v) { return v[0] - v[1]; });
  check("rsub", 2, [](const Vars& v) { return v[1] - v[0]; });
  check("mul", 2, [](const Vars& v) { return v[0] * v[1]; });
  check(
      "div", 2, [](const Vars& v) { return v[0] / v[1]; }, 2);
  check(
      "numbers", 1, [](const Vars& v) { return 3 - 2.5 * v[0] / 4 + 1; }, 3);
}

TEST_F(PointwiseReference, Powers) {
  check(
      "pow", 2, [](const Vars& v) { return pow(v[0], v[1]); }, 4);
  check("pow_2", 1, [](const Vars& v) { return pow(v[0], 2); });
  check(
      "pow_3", 1, [](const Vars& v) { return pow(v[0], 3); }, 2);
  check("pow_0.5", 1, [](const Vars& v) { return pow(v[0], 0.5); });
  check(
      "pow_-1", 1, [](const Vars& v) { return pow(v[0], -1); }, 4);
  check("pow_1.7", 1, [](const Vars& v) { return pow(v[0], 1.7); });
  check("pow_0", 1, [](const Vars& v) { return pow(v[0], 0); });
  check(
      "rpow", 1, [](const Vars& v) { return pow(2.0, v[0]); }, 2);
}

TEST_F(PointwiseReference, Elementary) {
  check("neg", 1, [](const Vars& v) { return -v[0]; });
  check("abs", 1, [](const Vars& v) { return abs(v[0]); });
  check("exp", 1, [](const Vars& v) { return exp(v[0]); });
  check("log", 1, [](const Vars& v) { return log(v[0]); });
  check("log1p", 1, [](const Vars& v) { return log1p(v[0]); });
  check("sin", 1, [](const Vars& v) { return sin(v[0]); });
  check("cos", 1, [](const Vars& v) { return cos(v[0]); });
  check("erf", 1, [](const Vars& v) { return erf(v[0]); });
  check("square", 1, [](const Vars& v) { return square(v[0]); });
  check("sqrt", 1, [](const Vars& v) { return sqrt(v[0]); });
  check(
      "rsqrt", 1, [](const Vars& v) { return rsqrt(v[0]); }, 4);
  check(
      "reciprocal", 1, [](const Vars& v) { return reciprocal(v[0]); }, 4);
}

TEST_F(PointwiseReference, Activations) {
  check("relu", 1, [](const Vars& v) { return relu(v[0]); });
  check("sigmoid", 1, [](const Vars& v) { return sigmoid(v[0]); });
  check("tanh", 1, [](const Vars& v) { return tanh(v[0]); });
  check("silu", 1, [](const Vars& v) { return silu(v[0]); });
  check("gelu", 1, [](const Vars& v) { return gelu(v[0]); });
  check("gelu_tanh", 1, [](const Vars& v) { return gelu(v[0], GeluApproximation::kTanh); });
}

TEST_F(PointwiseReference, Choice) {
  check("maximum", 2, [](const Vars& v) { return maximum(v[0], v[1]); });
  check("minimum", 2, [](const Vars& v) { return minimum(v[0], v[1]); });
  check("clamp", 1, [](const Vars& v) { return clamp(v[0], -1, 0.75); });
  const Variable even(kernels::eq(tensor<float>({0, 1, 0, 1}), 0));
  check("where", 2, [&](const Vars& v) { return where(even, v[0], v[1]); });
}

TEST_F(PointwiseReference, Reductions) {
  const std::pair<std::string, Shape> sets[] = {
      {"all", {}}, {"0", {0}}, {"02", {0, 2}}, {"last", {-1}}};
  for (const auto& set : sets) {
    const Shape axes = set.second;
    const auto& name = set.first;
    check("sum_" + name, 1, [&](const Vars& v) { return sum(v[0], axes); });
    check("mean_" + name, 1, [&](const Vars& v) { return mean(v[0], axes); });
    check(
        "var_" + name, 1, [&](const Vars& v) { return var(v[0], axes); }, 2);
    check(
        "std_" + name, 1, [&](const Vars& v) { return std(v[0], axes, false); }, 2);
    check("amax_" + name, 1, [&](const Vars& v) { return amax(v[0], axes); });
    check(
        "norm_" + name, 1, [&](const Vars& v) { return norm(v[0], Norm::kL2, axes); }, 2);
    check("norm1_" + name, 1, [&](const Vars& v) { return norm(v[0], Norm::kL1, axes); });
    check("norminf_" + name, 1, [&](const Vars& v) { return norm(v[0], Norm::kInf, axes); });
  }
  check("max_ties", 1, [](const Vars& v) { return max(v[0]); });
  check("max_along", 1, [](const Vars& v) { return max(v[0], 1).first; });
  check("min_along", 1, [](const Vars& v) { return min(v[0], -1, true).first; });
  check("sort", 1, [](const Vars& v) { return sort(v[0], 1, true).first; });
  check("topk", 1, [](const Vars& v) { return topk(v[0], 2, 2).first; });
}

TEST_F(PointwiseReference, Shapes) {
  check("permute", 1, [](const Vars& v) { return permute(v[0], {2, 0, 1}); });
  check("flatten", 1, [](const Vars& v) { return flatten(v[0], 1); });
  check("slice", 1, [](const Vars& v) { return slice(v[0], 2, 1, 4, 2); });
  check("select", 1, [](const Vars& v) { return select(v[0], 1, -1); });
  check("expand", 1, [](const Vars& v) { return expand(v[0], {2, 3, 4}); });
  check("cat", 2, [](const Vars& v) { return cat(Vars{v[0], expand(v[1], {2, 3, 1}), v[0]}, 2); });
  check("stack", 2, [](const Vars& v) { return stack(Vars{v[0], expand(v[1], {2, 3, 4})}, 1); });
  check("chunk", 1, [](const Vars& v) { return chunk(v[0], 3, 2)[1]; });
  check("pad", 1, [](const Vars& v) { return pad(v[0], {1, 2, 0, 1}, 0.5); });
  const Variable rows(tensor<std::int64_t>({2, 0, 2}));
  check("index_select", 1, [&](const Vars& v) { return index_select(v[0], 1, rows); });
  const Variable places(tensor<std::int64_t>({3, 3, 0, 1}, {2, 1, 2}));
  check("gather", 1, [&](const Vars& v) { return gather(v[0], 2, places); });
}

}  // namespace
}  // namespace lockstep::testing
