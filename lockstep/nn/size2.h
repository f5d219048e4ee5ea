// A height and a width, given as one number for both or as {h, w}.
#pragma once

#include <cstdint>

namespace lockstep::nn {

struct Size2 {
  std::int64_t h = 0;
  std::int64_t w = 0;

  constexpr Size2() = default;
  constexpr Size2(std::int64_t both) : h(both), w(both) {}  // NOLINT(google-explicit-constructor)
  constexpr Size2(std::int64_t height, std::int64_t width) : h(height), w(width) {}
  constexpr bool operator==(const Size2&) const = default;
};

}  // namespace lockstep::nn
