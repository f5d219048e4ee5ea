#include "lockstep/core/random.h"

#include <algorithm>
#include <type_traits>

#include "lockstep/core/box_muller.h"
#include "lockstep/core/check.h"
#include "lockstep/core/dispatch.h"

namespace lockstep {
namespace {

// Calls fill(T* values, n) on the elements in row-major order, through a copy for other layouts.
template <class Fill>
void fill_floating(const Tensor& tensor, const char* op, Fill&& fill) {
  LOCKSTEP_CHECK(tensor.defined(), "{}: the tensor is undefined", op);
  const bool in_place = tensor.is_contiguous() && tensor.device().is_cpu();
  const Tensor target = in_place ? tensor : empty(tensor.shape(), {.dtype = tensor.dtype()});
  visit_floating(tensor.dtype(), op, [&]<class T>() { fill(target.data<T>(), target.numel()); });
  if (in_place)
    tensor.bump_version();
  else
    copy_elements(tensor, target);
}

template <class T>
void draw_uniform(T* values, std::int64_t n, Generator& generator) {
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, double>)
      values[i] = generator.uniform_f64();
    else
      values[i] = generator.uniform_f32();
  }
}

// n >= 16. The last, incomplete block is drawn anew, over the end of the one before it.
template <class T>
void fill_normal_blocks(T* values, std::int64_t n, T mean, T std, Generator& generator) {
  draw_uniform(values, n, generator);
  for (std::int64_t i = 0; i + 16 <= n; i += 16) box_muller_16(values + i, mean, std);
  if (n % 16 != 0) {
    draw_uniform(values + n - 16, 16, generator);
    box_muller_16(values + n - 16, mean, std);
  }
}

template <class T>
void fill_normal_blocks_half(T* values, std::int64_t n, float mean, float std,
                             Generator& generator) {
  float block[16];
  const auto fill_at = [&](std::int64_t start) {
    draw_uniform(block, 16, generator);
    box_muller_16(block, mean, std);
    for (int j = 0; j < 16; ++j) values[start + j] = static_cast<T>(block[j]);
  };
  for (std::int64_t i = 0; i + 16 <= n; i += 16) fill_at(i);
  if (n % 16 != 0) fill_at(n - 16);
}

}  // namespace

void uniform_(const Tensor& tensor, double from, double to, Generator& generator) {
  LOCKSTEP_CHECK(from <= to, "uniform_: expected from <= to, got [{}, {})", from, to);
  fill_floating(tensor, "uniform_", [&]<class T>(T* values, std::int64_t n) {
    using Math = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const auto low = static_cast<Math>(from), high = static_cast<Math>(to);
    const T high_value = static_cast<T>(to), low_value = static_cast<T>(from);
    for (std::int64_t i = 0; i < n; ++i) {
      T value;
      if constexpr (std::is_same_v<T, double>)
        value = generator.uniform_f64(low, high);
      else
        value = static_cast<T>(generator.uniform_f32(low, high));
      values[i] = value == high_value ? low_value : value;
    }
  });
}

void normal_(const Tensor& tensor, double mean, double std, Generator& generator) {
  LOCKSTEP_CHECK(std >= 0, "normal_: std must not be negative, got {}", std);
  fill_floating(tensor, "normal_", [&]<class T>(T* values, std::int64_t n) {
    if (n < 16) {
      for (std::int64_t i = 0; i < n; ++i) values[i] = static_cast<T>(generator.normal(mean, std));
    } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      fill_normal_blocks(values, n, static_cast<T>(mean), static_cast<T>(std), generator);
    } else {
      fill_normal_blocks_half(values, n, static_cast<float>(mean), static_cast<float>(std),
                              generator);
    }
  });
}

void bernoulli_(const Tensor& tensor, double p, Generator& generator) {
  LOCKSTEP_CHECK(p >= 0 && p <= 1, "bernoulli_: p must be in [0, 1], got {}", p);
  fill_floating(tensor, "bernoulli_", [&]<class T>(T* values, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i)
      values[i] = static_cast<T>(generator.bernoulli(p) ? 1.0F : 0.0F);
  });
}

Tensor rand(const Shape& shape, Generator& generator, const TensorOptions& options) {
  const Tensor tensor = empty(shape, options);
  uniform_(tensor, 0, 1, generator);
  return tensor;
}

Tensor randn(const Shape& shape, Generator& generator, const TensorOptions& options) {
  const Tensor tensor = empty(shape, options);
  normal_(tensor, 0, 1, generator);
  return tensor;
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, Generator& generator) {
  LOCKSTEP_CHECK(low < high, "randint: empty range [{}, {})", low, high);
  const Tensor tensor = empty(shape, {.dtype = kI64});
  auto* values = tensor.data<std::int64_t>();
  std::generate_n(values, tensor.numel(), [&] { return generator.randint(low, high); });
  return tensor;
}

Tensor randperm(std::int64_t n, Generator& generator) { return tensor(generator.randperm(n)); }

}  // namespace lockstep
