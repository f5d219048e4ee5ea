// Values that PyTorch computed, and the layouts that they are tried in.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "lockstep/core/check.h"
#include "lockstep/core/safetensors.h"

namespace lockstep::testing {

// One file of tests/reference/values, by the tensors' names.
class Reference {
 public:
  explicit Reference(const std::string& file)
      : tensors_(load_safetensors(LOCKSTEP_SOURCE_DIR "/tests/reference/values/" + file)) {}

  const Tensor& operator[](const std::string& name) const {
    const auto it = tensors_.find(name);
    LOCKSTEP_CHECK(it != tensors_.end(), "no reference tensor named {}", name);
    return it->second;
  }

 private:
  TensorMap tensors_;
};

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

}  // namespace lockstep::testing
