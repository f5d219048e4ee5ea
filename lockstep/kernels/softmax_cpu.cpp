// Softmax and log-softmax on the CPU: one row at a time, in cache.
#include "lockstep/kernels/softmax.h"

#include <cmath>

#include "lockstep/core/config.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/rows.h"
#include "lockstep/kernels/softmax_cuda.h"
#include "lockstep/kernels/softmax_row.h"

namespace lockstep::kernels {
namespace {

template <class T>
LOCKSTEP_SIMD_FN void softmax_row(const T* x, T* y, std::int64_t n) {
  using A = Accumulator<T>;
  constexpr A kLowest = -std::numeric_limits<A>::infinity();
  const A max = row_max(x, n);
  if constexpr (std::is_same_v<T, A>) {
    const A scale = 1 / sum_row<T>(n, [&](std::int64_t i, std::int64_t k) LOCKSTEP_SIMD {
                      const Lanes<T> e = exp_lanes(load_at(x, i, k, kLowest) - max);
                      store_at(y, i, k, e);
                      return e;
                    });
    for_each_vector<T>(n, [&](std::int64_t i, std::int64_t k)
                              LOCKSTEP_SIMD { store_at(y, i, k, load_at(y, i, k) * scale); });
  } else {  // y is too narrow to keep the exponentials
    const A scale = 1 / row_exp_sum(x, n, max);
    for_each_vector<T>(n, [&](std::int64_t i, std::int64_t k) LOCKSTEP_SIMD {
      store_at(y, i, k, exp_lanes(load_at(x, i, k, kLowest) - max) * scale);
    });
  }
}

template <class T>
LOCKSTEP_SIMD_FN void softmax_grad_row(const T* dy, const T* y, T* dx, std::int64_t n) {
  const Accumulator<T> dot = sum_row<T>(n, [&](std::int64_t i, std::int64_t k) LOCKSTEP_SIMD {
    return load_at(dy, i, k) * load_at(y, i, k);
  });
  for_each_vector<T>(n, [&](std::int64_t i, std::int64_t k) LOCKSTEP_SIMD {
    store_at(dx, i, k, load_at(y, i, k) * (load_at(dy, i, k) - dot));
  });
}

template <class T>
LOCKSTEP_SIMD_FN void log_softmax_row(const T* x, T* y, std::int64_t n) {
  const Accumulator<T> max = row_max(x, n);
  const Accumulator<T> log_sum = std::log(row_exp_sum(x, n, max));
  for_each_vector<T>(n, [&](std::int64_t i, std::int64_t k) LOCKSTEP_SIMD {
    store_at(y, i, k, (load_at(x, i, k) - max) - log_sum);
  });
}

template <class T>
LOCKSTEP_SIMD_FN void log_softmax_grad_row(const T* dy, const T* y, T* dx, std::int64_t n) {
  const Accumulator<T> sum = sum_row<T>(
      n, [&](std::int64_t i, std::int64_t k) LOCKSTEP_SIMD { return load_at(dy, i, k); });
  for_each_vector<T>(n, [&](std::int64_t i, std::int64_t k) LOCKSTEP_SIMD {
    store_at(dx, i, k, load_at(dy, i, k) - exp_lanes(load_at(y, i, k)) * sum);
  });
}

struct Rows {
  std::int64_t count, length;
};
Rows rows_of(const Tensor& rows) {
  const std::int64_t length = rows.shape().back();
  return {length == 0 ? 0 : rows.numel() / length, length};
}

// A scalar counts as a row of one.
Tensor at_least_1d(const Tensor& x) { return x.dim() == 0 ? x.view({1}) : x; }
Tensor shaped_back(const Tensor& y, const Tensor& given) {
  return given.dim() == 0 ? y.view({}) : y;
}

enum class Kind { kPlain, kLog };
using enum Kind;

Tensor forward(const Tensor& given, int axis, Kind kind, const char* op) {
  const Tensor like = at_least_1d(given);
  const Tensor x = to_rows(like, axis);
  Tensor y = empty(x.shape(), {x.dtype(), x.device()});
  const Rows rows = rows_of(x);
  if constexpr (kHasCuda) {
    if (x.device().is_cuda()) {
      const Shape matrix{rows.count, rows.length};
      if (x.numel() > 0) cuda::softmax_rows(x.view(matrix), y.view(matrix), kind == kLog);
      return shaped_back(from_rows(y, axis, like), given);
    }
  }
  visit_floating(x.dtype(), op, [&]<class T>() {
    parallel_for(rows.count, row_grain(rows.length), [&](std::int64_t begin, std::int64_t end) {
      run_simd([&]() LOCKSTEP_SIMD {
        for (std::int64_t r = begin; r < end; ++r) {
          const T* from = x.data<T>() + r * rows.length;
          T* to = y.data<T>() + r * rows.length;
          if (kind == kPlain)
            softmax_row(from, to, rows.length);
          else
            log_softmax_row(from, to, rows.length);
        }
      });
    });
  });
  return shaped_back(from_rows(y, axis, like), given);
}

Tensor backward(const Tensor& given_dy, const Tensor& given_y, int axis, Kind kind,
                const char* op) {
  LOCKSTEP_CHECK(given_dy.shape() == given_y.shape() && given_dy.dtype() == given_y.dtype(),
                 "{}: gradient is {} {} but the result is {} {}", op, given_dy.dtype(),
                 given_dy.shape(), given_y.dtype(), given_y.shape());
  const Tensor like = at_least_1d(given_y);
  const Tensor y = to_rows(like, axis);
  const Tensor dy = to_rows(at_least_1d(given_dy), axis);
  Tensor dx = empty(y.shape(), {y.dtype(), y.device()});
  const Rows rows = rows_of(y);
  if constexpr (kHasCuda) {
    if (common_device(op, {&dy, &y}).is_cuda()) {
      const Shape matrix{rows.count, rows.length};
      if (y.numel() > 0)
        cuda::softmax_rows_backward(dy.view(matrix), y.view(matrix), dx.view(matrix), kind == kLog);
      return shaped_back(from_rows(dx, axis, like), given_y);
    }
  }
  visit_floating(y.dtype(), op, [&]<class T>() {
    parallel_for(rows.count, row_grain(rows.length), [&](std::int64_t begin, std::int64_t end) {
      run_simd([&]() LOCKSTEP_SIMD {
        for (std::int64_t r = begin; r < end; ++r) {
          const std::int64_t at = r * rows.length;
          if (kind == kPlain)
            softmax_grad_row(dy.data<T>() + at, y.data<T>() + at, dx.data<T>() + at, rows.length);
          else
            log_softmax_grad_row(dy.data<T>() + at, y.data<T>() + at, dx.data<T>() + at,
                                 rows.length);
        }
      });
    });
  });
  return shaped_back(from_rows(dx, axis, like), given_y);
}

}  // namespace

Tensor softmax_forward(const Tensor& x, int axis) { return forward(x, axis, kPlain, "softmax"); }
Tensor softmax_backward(const Tensor& dy, const Tensor& y, int axis) {
  return backward(dy, y, axis, kPlain, "softmax backward");
}
Tensor log_softmax_forward(const Tensor& x, int axis) {
  return forward(x, axis, kLog, "log_softmax");
}
Tensor log_softmax_backward(const Tensor& dy, const Tensor& y, int axis) {
  return backward(dy, y, axis, kLog, "log_softmax backward");
}

}  // namespace lockstep::kernels
