#include "lockstep/core/generator.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "lockstep/core/check.h"

namespace lockstep {
namespace {

// Layout of a saved state, all little-endian: magic, seed, stream, Philox offset (8 bytes each),
// kept normal (flag 8, value 8), position 8, then the 624 words of the Mersenne Twister.
constexpr std::uint64_t kStateMagic = 0x31'47'4E'52'4B'43'4F'4C;  // "LOCKRNG1"
constexpr std::int64_t kStateBytes = 7 * 8 + Mt19937::kStateSize * 4;

template <class T>
void put(std::uint8_t*& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) *out++ = static_cast<std::uint8_t>(value >> (8 * i));
}

template <class T>
T take(const std::uint8_t*& in) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(*in++) << (8 * i);
  return value;
}

}  // namespace

void Generator::manual_seed(std::uint64_t seed) {
  engine_ = Mt19937(seed);
  next_normal_.reset();
  seed_ = seed;
  philox_offset_ = 0;
}

std::uint64_t Generator::random64() {
  const std::uint64_t high = random();
  return high << 32 | random();
}

// PyTorch's kernel is compiled with multiply-add contraction: one rounding, hence std::fma.
float Generator::uniform_f32(float from, float to) {
  const float x = static_cast<float>(random() & 0xFFFFFFU) * 0x1p-24f;
  return std::fma(x, to - from, from);
}

double Generator::uniform_f64(double from, double to) {
  const double x = static_cast<double>(random64() & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53;
  return std::fma(x, to - from, from);
}

double Generator::normal(double mean, double std) {
  LOCKSTEP_CHECK(std >= 0, "normal: std must not be negative, got {}", std);
  if (next_normal_) {
    const double kept = *std::exchange(next_normal_, std::nullopt);
    return std::fma(kept, std, mean);
  }
  const double u1 = uniform_f64();
  const double u2 = uniform_f64();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double theta = 2.0 * std::numbers::pi * u1;
  next_normal_ = radius * std::sin(theta);
  return std::fma(radius * std::cos(theta), std, mean);
}

bool Generator::bernoulli(double p) {
  LOCKSTEP_CHECK(p >= 0 && p <= 1, "bernoulli: p must be in [0, 1], got {}", p);
  return uniform_f64() < p;
}

std::int64_t Generator::randint(std::int64_t low, std::int64_t high) {
  LOCKSTEP_CHECK(low < high, "randint: empty range [{}, {})", low, high);
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const std::uint64_t draw = (range >= std::uint64_t{1} << 28) ? random64() : random();
  return static_cast<std::int64_t>(draw % range + static_cast<std::uint64_t>(low));
}

std::vector<std::int64_t> Generator::randperm(std::int64_t n) {
  LOCKSTEP_CHECK(n >= 0, "randperm: n must not be negative, got {}", n);
  std::vector<std::int64_t> p(static_cast<std::size_t>(n));
  std::iota(p.begin(), p.end(), std::int64_t{0});
  if (n < std::numeric_limits<std::uint32_t>::max() / 20) {
    for (std::int64_t i = 0; i < n - 1; ++i) std::swap(p[i], p[i + random() % (n - i)]);
    return p;
  }
  // 32 bits modulo such an n would favour small numbers: 64 bits, inside-out shuffle.
  for (std::int64_t i = 0; i < n; ++i) {
    const auto z = static_cast<std::int64_t>(random64() % static_cast<std::uint64_t>(i + 1));
    p[i] = p[z];
    p[z] = i;
  }
  return p;
}

PhiloxSequence Generator::philox(std::uint64_t count) {
  const PhiloxSequence piece{seed_, stream_, philox_offset_};
  philox_offset_ += count / 4 + (count % 4 != 0);
  return piece;
}

Tensor Generator::state() const {
  Tensor bytes = empty({kStateBytes}, {.dtype = kU8});
  std::uint8_t* out = bytes.data<std::uint8_t>();
  std::uint64_t normal_bits;
  const double normal = next_normal_.value_or(0);
  std::memcpy(&normal_bits, &normal, sizeof normal_bits);
  put(out, kStateMagic);
  put(out, seed_);
  put(out, stream_);
  put(out, philox_offset_);
  put(out, static_cast<std::uint64_t>(next_normal_.has_value()));
  put(out, normal_bits);
  put(out, static_cast<std::uint64_t>(engine_.position()));
  for (const std::uint32_t word : engine_.state()) put(out, word);
  return bytes;
}

void Generator::set_state(const Tensor& state) {
  LOCKSTEP_CHECK(state.defined() && state.dtype() == kU8 && state.shape() == Shape{kStateBytes},
                 "Generator.set_state: expected a u8 tensor of shape ({}), got {} {}", kStateBytes,
                 state.defined() ? dtype_name(state.dtype()) : "an undefined tensor",
                 state.shape());
  const Tensor bytes = state.contiguous();
  const std::uint8_t* in = bytes.data<std::uint8_t>();
  LOCKSTEP_CHECK(take<std::uint64_t>(in) == kStateMagic,
                 "Generator.set_state: these bytes are no generator state");
  const auto seed = take<std::uint64_t>(in);
  const auto stream = take<std::uint64_t>(in);
  const auto philox_offset = take<std::uint64_t>(in);
  const auto has_normal = take<std::uint64_t>(in);
  const auto normal_bits = take<std::uint64_t>(in);
  const auto position = take<std::uint64_t>(in);
  LOCKSTEP_CHECK(has_normal <= 1 && position <= Mt19937::kStateSize,
                 "Generator.set_state: damaged state (flag {}, position {})", has_normal, position);
  std::array<std::uint32_t, Mt19937::kStateSize> words;
  for (std::uint32_t& word : words) word = take<std::uint32_t>(in);
  double normal;
  std::memcpy(&normal, &normal_bits, sizeof normal);

  engine_ = Mt19937(words, static_cast<int>(position));
  next_normal_ = has_normal ? std::optional<double>(normal) : std::nullopt;
  seed_ = seed;
  stream_ = stream;
  philox_offset_ = philox_offset;
}

Generator& default_generator() {
  thread_local Generator generator;
  return generator;
}

void manual_seed(std::uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace lockstep
