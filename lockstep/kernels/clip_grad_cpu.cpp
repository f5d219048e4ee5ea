#include <cmath>
#include <limits>

#include "lockstep/core/check.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/kernels/clip_grad.h"
#include "lockstep/kernels/segment_loop.h"

namespace lockstep::kernels {
namespace {

inline constexpr int kLanes = 16;  // partial sums of a chunk, added in a fixed order

template <class T>
[[gnu::always_inline]] inline double square_sum(const T* __restrict x, std::int64_t n,
                                                double inverse) {
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      const double y = static_cast<double>(load_value(x[i + j])) * inverse;
      lanes[j] += y * y;
    }
  }
  for (; i < n; ++i) {
    const double y = static_cast<double>(load_value(x[i])) * inverse;
    lanes[i % kLanes] += y * y;
  }
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

// Largest magnitude; a NaN wins over everything.
template <class T>
[[gnu::always_inline]] inline double largest(const T* __restrict x, std::int64_t n) {
  double most = 0;
  double poison = 0;  // becomes NaN with the first NaN or inf - inf
  for (std::int64_t i = 0; i < n; ++i) {
    const double y = std::abs(static_cast<double>(load_value(x[i])));
    most = y > most ? y : most;
    poison += y != y ? y : 0.0;
  }
  return most + poison;
}

template <class T>
double power_sum(const T* x, std::int64_t n, double inverse, double p) {
  double lanes[kLanes] = {};
  for (std::int64_t i = 0; i < n; ++i)
    lanes[i % kLanes] += std::pow(std::abs(static_cast<double>(load_value(x[i]))) * inverse, p);
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

// Dense blocks to read; other layouts are gathered first.
std::vector<Tensor> blocks_of(std::span<const Tensor> tensors, const char* op) {
  std::vector<Tensor> blocks;
  for (const Tensor& t : tensors) {
    LOCKSTEP_CHECK(t.defined() && is_floating(t.dtype()), "{}: a gradient must be floating", op);
    blocks.push_back(t.is_dense() ? t : t.contiguous());
  }
  return blocks;
}

std::vector<SegmentChunk> chunks_of(const std::vector<Tensor>& blocks) {
  return cut_segments(static_cast<std::int64_t>(blocks.size()),
                      [&](std::int64_t i) { return blocks[static_cast<std::size_t>(i)].numel(); });
}

// f(x, n) of every chunk, in the order of the chunks.
template <class F>
std::vector<double> per_chunk(const std::vector<Tensor>& blocks, F&& f) {
  const auto chunks = chunks_of(blocks);
  std::vector<double> results(chunks.size());
  for_each_chunk(chunks, [&](std::int64_t i, const SegmentChunk& chunk) {
    const Tensor& t = blocks[static_cast<std::size_t>(chunk.segment)];
    visit_floating(t.dtype(), "grad_norm", [&]<class T>() {
      results[static_cast<std::size_t>(i)] =
          f(static_cast<const T*>(t.data<T>()) + chunk.begin, chunk.end - chunk.begin);
    });
  });
  return results;
}

double largest_of(const std::vector<Tensor>& blocks, Isa isa) {
  double most = 0;
  for (double x : per_chunk(blocks, [&](const auto*x, std::int64_t n) {
         double result = 0;
         call_at(
             isa, [&]() __attribute__((always_inline)) { result = largest(x, n); });
         return result;
       })) {
    if (std::isnan(x)) return x;
    most = std::max(most, x);
  }
  return most;
}

// Applies f(x, n) to every chunk in place; a layout that is not dense is written back.
template <class F>
void rewrite(std::span<const Tensor> tensors, const char* op, F&& f) {
  const std::vector<Tensor> blocks = blocks_of(tensors, op);
  for_each_chunk(chunks_of(blocks), [&](std::int64_t, const SegmentChunk& chunk) {
    const Tensor& t = blocks[static_cast<std::size_t>(chunk.segment)];
    visit_floating(t.dtype(), op,
                   [&]<class T>() { f(t.data<T>() + chunk.begin, chunk.end - chunk.begin); });
  });
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (tensors[i].is_dense())
      tensors[i].bump_version();
    else
      copy_elements(tensors[i], blocks[i]);
  }
}

template <class T>
[[gnu::always_inline]] inline void scale_loop(T* __restrict x, std::int64_t n, double factor) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double y = static_cast<double>(load_value(x[i])) * factor;
    store_value(x[i], static_cast<StateOf<T>>(y));
  }
}

template <class T>
[[gnu::always_inline]] inline void clamp_loop(T* __restrict x, std::int64_t n, StateOf<T> limit) {
  for (std::int64_t i = 0; i < n; ++i) {
    StateOf<T> y = load_value(x[i]);
    y = y > limit ? limit : y;
    y = y < -limit ? -limit : y;
    store_value(x[i], y);
  }
}

}  // namespace

double grad_norm(std::span<const Tensor> tensors, double p, Isa isa) {
  LOCKSTEP_CHECK(p > 0, "grad_norm: the norm's order must be positive but is {}", p);
  const std::vector<Tensor> blocks = blocks_of(tensors, "grad_norm");
  const bool has_f64 =
      std::any_of(blocks.begin(), blocks.end(), [](const Tensor& t) { return t.dtype() == kF64; });
  double largest_value = 1;
  // Squares of f32 fit f64 as they are; other cases are scaled by the largest element.
  if (p != 2 || has_f64) {
    largest_value = largest_of(blocks, isa);
    if (std::isinf(p) || largest_value == 0 || !std::isfinite(largest_value)) return largest_value;
  }
  // A subnormal largest element has no finite inverse.
  const double inverse = 1 / std::max(largest_value, std::numeric_limits<double>::min());
  const auto sums = per_chunk(blocks, [&](const auto* x, std::int64_t n) {
    if (p != 2) return power_sum(x, n, inverse, p);
    double result = 0;
    call_at(
        isa, [&]() __attribute__((always_inline)) { result = square_sum(x, n, inverse); });
    return result;
  });
  double total = 0;
  for (double sum : sums) total += sum;
  const double root = p == 2 ? std::sqrt(total) : std::pow(total, 1 / p);
  return root / inverse;
}

void scale_in_place(std::span<const Tensor> tensors, double factor, Isa isa) {
  rewrite(tensors, "scale_in_place", [&]<class T>(T* x, std::int64_t n) {
    call_at(
        isa, [&]() __attribute__((always_inline)) { scale_loop(x, n, factor); });
  });
}

void clamp_in_place(std::span<const Tensor> tensors, double limit, Isa isa) {
  rewrite(tensors, "clamp_in_place", [&]<class T>(T* x, std::int64_t n) {
    const auto bound = static_cast<StateOf<T>>(limit);
    call_at(
        isa, [&]() __attribute__((always_inline)) { clamp_loop(x, n, bound); });
  });
}

}  // namespace lockstep::kernels
