// An operation with gradients against a case that tests/reference/make_losses.py recorded.
#pragma once

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "lockstep/autograd/variable.h"
#include "support/expect_close.h"
#include "support/reference.h"

namespace lockstep::testing {

enum class Layout { kContiguous, kReversed, kStrided };
inline constexpr Layout kLayouts[] = {Layout::kContiguous, Layout::kReversed, Layout::kStrided};

// The same elements: contiguous; dense with the axes in reverse order; every second element of a
// larger tensor.
inline Tensor laid_out(const Tensor& x, Layout layout) {
  if (layout == Layout::kContiguous || x.dim() == 0) return x.contiguous();
  if (layout == Layout::kReversed) {
    std::vector<int> reversed(static_cast<std::size_t>(x.dim()));
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    return x.permute(reversed).contiguous().permute(reversed);
  }
  Shape wide = x.shape();
  wide[x.dim() - 1] *= 2;
  Tensor y = zeros(wide, {x.dtype()}).slice(-1, 0, wide.back(), 2);
  copy_elements(y, x);
  return y;
}

struct Tolerance {
  double rtol, atol;
};
inline Tolerance tolerance_of(const std::string& dtype) {
  if (dtype == "f64") return {1e-12, 1e-13};
  if (dtype == "f32") return {1e-5, 1e-6};
  if (dtype == "f16") return {4e-3, 2e-3};
  return {3e-2, 2e-2};
}
inline const std::string kFloatingNames[] = {"f32", "f64", "f16", "bf16"};

using Operation = std::function<Variable(const std::vector<Variable>&)>;

// Runs f on the leaves "<name>/<key>" in every layout and compares the result, its dtype, and the
// gradients "<name>/d<key>" for the recorded upstream gradient.
inline void check_case(const Reference& reference, const std::string& name,
                       const std::vector<std::string>& keys, Tolerance tolerance,
                       const Operation& f) {
  for (Layout layout : kLayouts) {
    SCOPED_TRACE(name + ", layout " + std::to_string(static_cast<int>(layout)));
    std::vector<Variable> leaves;
    for (const auto& key : keys)
      leaves.emplace_back(laid_out(reference[name + "/" + key], layout), true);
    const Variable y = f(leaves);
    EXPECT_EQ(y.dtype(), reference[name + "/y"].dtype());
    EXPECT_CLOSE(y.data(), reference[name + "/y"], tolerance.rtol, tolerance.atol);
    y.backward(laid_out(reference[name + "/dy"], layout));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      SCOPED_TRACE("gradient of " + keys[i]);
      EXPECT_CLOSE(leaves[i].grad(), reference[name + "/d" + keys[i]], tolerance.rtol,
                   tolerance.atol);
    }
  }
}

// The message of the Error that f throws; empty if it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

inline Tensor filled_with(const Tensor& values, DType dtype) {
  Tensor out = empty(values.shape(), {dtype});
  const Tensor c = values.contiguous();
  visit_dtype(dtype, [&]<class T>() {
    for (std::int64_t i = 0; i < c.numel(); ++i) out.data<T>()[i] = static_cast<T>(element(c, i));
  });
  return out;
}

}  // namespace lockstep::testing
