// Values that PyTorch computed, by name.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/safetensors.h"
#include "support/expect_close.h"

namespace lockstep::testing {

// tests/reference/values/<file>.safetensors.
class Reference {
 public:
  explicit Reference(const std::string& file)
      : values_(load_safetensors(LOCKSTEP_SOURCE_DIR "/tests/reference/values/" + file +
                                 ".safetensors")) {}

  bool has(const std::string& name) const { return values_.contains(name); }
  const Tensor& operator[](const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) throw Error("no reference value " + name);
    return found->second;
  }
  const TensorMap& all() const { return values_; }

 private:
  TensorMap values_;
};

// The stored tensor, or (of a big one) two sums over its bits and its first and last 64 values: see
// tests/reference/make_init.py.
inline void expect_same_bits_as_stored(const Reference& reference, const std::string& name,
                                       const Tensor& actual) {
  SCOPED_TRACE(name);
  if (reference.has(name)) {
    EXPECT_SAME_BITS(actual, reference[name]);
    return;
  }
  const Tensor flat = actual.reshape({actual.numel()});
  std::int64_t sum = 0, weighted = 0;
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, flat.data<float>() + i, sizeof bits);
    sum += bits;
    weighted += std::int64_t{bits % 65521} * ((i + 1) % 65521);
  }
  const auto* sums = reference[name + "#bits"].data<std::int64_t>();
  EXPECT_EQ(sum, sums[0]);
  EXPECT_EQ(weighted, sums[1]);
  const Tensor& ends = reference[name + "#ends"];
  EXPECT_SAME_BITS(flat.slice(0, 0, 64), ends.slice(0, 0, 64));
  EXPECT_SAME_BITS(flat.slice(0, -64, flat.numel()), ends.slice(0, 64, 128));
}

}  // namespace lockstep::testing
