#include "lockstep/data/digits.h"

#include <algorithm>
#include <array>
#include <vector>

namespace lockstep::data {
namespace {

constexpr int kSmall = 8;
constexpr int kLarge = 28;
constexpr int kBrightest = 16;
constexpr int kClasses = 10;
constexpr int kHoldOutEvery = 5;

// One character for the label, then one for each pixel: 0..9, a..g.
constexpr char kDigits[][1 + kSmall * kSmall + 1] = {
#include "lockstep/data/digits/digits.inc"
};

constexpr int symbol_value(char symbol) { return symbol <= '9' ? symbol - '0' : symbol - 'a' + 10; }

// Pixel centre d of the large image lies at (d + 1/2) * 8/28 - 1/2 = (4 d - 5) / 14 of the small
// one, so the weights are whole 14ths.
struct Tap {
  int low;
  int high;
  int high_weight;  // of kWeights
};
constexpr int kWeights = 14;

constexpr std::array<Tap, kLarge> kTaps = [] {
  std::array<Tap, kLarge> taps{};
  for (int d = 0; d < kLarge; ++d) {
    const int at = std::clamp(4 * d - 5, 0, (kSmall - 1) * kWeights);
    const int low = at / kWeights;
    taps[static_cast<std::size_t>(d)] = {low, std::min(low + 1, kSmall - 1), at % kWeights};
  }
  return taps;
}();

void enlarge(const char* symbols, std::uint8_t* out) {
  const auto pixel = [&](int y, int x) { return symbol_value(symbols[y * kSmall + x]); };
  for (const Tap& v : kTaps) {
    for (const Tap& h : kTaps) {
      const auto along = [&](int y) {
        return pixel(y, h.low) * (kWeights - h.high_weight) + pixel(y, h.high) * h.high_weight;
      };
      const int sum = along(v.low) * (kWeights - v.high_weight) + along(v.high) * v.high_weight;
      constexpr int kDivisor = kWeights * kWeights * kBrightest;
      *out++ = static_cast<std::uint8_t>((sum * 255 + kDivisor / 2) / kDivisor);
    }
  }
}

}  // namespace

std::shared_ptr<ImageDataset> load_digits(Split split) {
  std::vector<const char*> chosen;
  std::array<int, kClasses> seen{};
  for (const auto& digit : kDigits) {
    const auto label = static_cast<std::size_t>(symbol_value(digit[0]));
    const bool held_out = ++seen[label] % kHoldOutEvery == 0;
    if (held_out == (split == Split::kTest)) chosen.push_back(digit);
  }
  const auto n = static_cast<std::int64_t>(chosen.size());
  Tensor images = empty({n, 1, kLarge, kLarge}, {.dtype = kU8});
  Tensor labels = empty({n}, {.dtype = kI64});
  for (std::int64_t i = 0; i < n; ++i) {
    const char* digit = chosen[static_cast<std::size_t>(i)];
    labels.data<std::int64_t>()[i] = symbol_value(digit[0]);
    enlarge(digit + 1, images.data<std::uint8_t>() + i * kLarge * kLarge);
  }
  return std::make_shared<ImageDataset>(images, labels, kClasses, "digits");
}

}  // namespace lockstep::data
