#include "lockstep/kernels/avg_pool2d.h"

#include <algorithm>
#include <vector>

#include "lockstep/core/check.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/image_layout.h"

namespace lockstep::kernels {
namespace {

// The positions [begin, end) of the image that a window covers along one axis.
struct Span {
  std::int64_t begin, end;
};

// All windows of an image: those along H, those along W, and what each sum is divided by.
struct Windows {
  std::vector<Span> rows, cols;
  std::vector<double> divisors;  // (P, Q)

  double divisor(std::size_t p, std::size_t q) const { return divisors[p * cols.size() + q]; }
};

Windows fixed_windows(const Shape& x, const Shape& y, const AvgPool2dOptions& options) {
  const Pool2dOptions& o = options.window;
  Windows w;
  std::vector<std::int64_t> padded[2];
  for (int axis = 0; axis < 2; ++axis) {
    const std::int64_t size = x[2 + axis];
    for (std::int64_t p = 0; p < y[2 + axis]; ++p) {
      const std::int64_t begin = p * o.stride[axis] - o.padding[axis];
      const std::int64_t end = std::min(begin + o.kernel[axis], size + o.padding[axis]);
      padded[axis].push_back(end - begin);
      const Span inside{std::max<std::int64_t>(begin, 0), std::min(end, size)};
      (axis == 0 ? w.rows : w.cols).push_back(inside);
    }
  }
  for (std::size_t p = 0; p < w.rows.size(); ++p)
    for (std::size_t q = 0; q < w.cols.size(); ++q) {
      const std::int64_t inside =
          (w.rows[p].end - w.rows[p].begin) * (w.cols[q].end - w.cols[q].begin);
      const std::int64_t counted = options.count_include_pad ? padded[0][p] * padded[1][q] : inside;
      w.divisors.push_back(static_cast<double>(options.divisor > 0 ? options.divisor : counted));
    }
  return w;
}

Windows adaptive_windows(const Shape& x, std::int64_t p, std::int64_t q) {
  const auto spans = [](std::int64_t size, std::int64_t count) {
    std::vector<Span> out;
    for (std::int64_t i = 0; i < count; ++i)
      out.push_back({i * size / count, ((i + 1) * size + count - 1) / count});
    return out;
  };
  Windows w{spans(x[2], p), spans(x[3], q), {}};
  for (const Span& r : w.rows)
    for (const Span& c : w.cols)
      w.divisors.push_back(static_cast<double>((r.end - r.begin) * (c.end - c.begin)));
  return w;
}

// Pieces per thread, so that each has enough to do to be worth waking.
std::int64_t grain(std::int64_t elements) {
  return 32768 / std::max<std::int64_t>(elements, 1) + 1;
}

Tensor forward(const Tensor& x, const Shape& shape, const Windows& w, const char* op) {
  const Tensor images = channels_last(x, op);
  Tensor y = empty(shape, {.dtype = x.dtype(), .format = MemoryFormat::kChannelsLast});
  if (y.numel() == 0) return y;
  const std::int64_t c = shape[1], width = x.shape()[3], image = x.shape()[2] * width * c;
  visit_floating(x.dtype(), op, [&]<class T>() {
    using A = Accumulator<T>;
    parallel_for(shape[0] * shape[2], grain(image / shape[2]),
                 [&](std::int64_t begin, std::int64_t end) {
                   std::vector<A> sum(c);
                   for (std::int64_t i = begin; i < end; ++i) {
                     const T* from = images.data<T>() + i / shape[2] * image;
                     T* to = y.data<T>() + i * shape[3] * c;
                     const Span rows = w.rows[i % shape[2]];
                     for (std::size_t q = 0; q < w.cols.size(); ++q, to += c) {
                       std::fill(sum.begin(), sum.end(), A(0));
                       for (std::int64_t r = rows.begin; r < rows.end; ++r)
                         for (std::int64_t s = w.cols[q].begin; s < w.cols[q].end; ++s) {
                           const T* pixel = from + (r * width + s) * c;
                           for (std::int64_t j = 0; j < c; ++j) sum[j] += static_cast<A>(pixel[j]);
                         }
                       const A divisor = static_cast<A>(w.divisor(i % shape[2], q));
                       for (std::int64_t j = 0; j < c; ++j)
                         to[j] = static_cast<T>(sum[j] / divisor);
                     }
                   }
                 });
  });
  return y;
}

Tensor backward(const Tensor& dy, const Shape& x, const Windows& w, const char* op) {
  const Tensor gradient = channels_last(dy, op);
  Tensor dx = empty(x, {.dtype = dy.dtype(), .format = MemoryFormat::kChannelsLast});
  if (dx.numel() == 0) return dx;
  const std::int64_t c = x[1], width = x[3], image = x[2] * width * c;
  visit_floating(dy.dtype(), op, [&]<class T>() {
    using A = Accumulator<T>;
    parallel_for(x[0], grain(image), [&](std::int64_t begin, std::int64_t end) {
      std::vector<A> sum(image);
      for (std::int64_t n = begin; n < end; ++n) {
        std::fill(sum.begin(), sum.end(), A(0));
        const T* g = gradient.data<T>() + n * dy.numel() / x[0];
        for (std::size_t p = 0; p < w.rows.size(); ++p)
          for (std::size_t q = 0; q < w.cols.size(); ++q, g += c) {
            const A divisor = static_cast<A>(w.divisor(p, q));
            for (std::int64_t r = w.rows[p].begin; r < w.rows[p].end; ++r)
              for (std::int64_t s = w.cols[q].begin; s < w.cols[q].end; ++s) {
                A* pixel = sum.data() + (r * width + s) * c;
                for (std::int64_t j = 0; j < c; ++j) pixel[j] += static_cast<A>(g[j]) / divisor;
              }
          }
        T* to = dx.data<T>() + n * image;
        for (std::int64_t i = 0; i < image; ++i) to[i] = static_cast<T>(sum[i]);
      }
    });
  });
  return dx;
}

Shape checked_shape(const Shape& x, const AvgPool2dOptions& o) {
  LOCKSTEP_CHECK(o.window.dilation[0] == 1 && o.window.dilation[1] == 1 && o.divisor >= 0,
                 "avg_pool2d: expected no dilation and a divisor of at least 0 but got {}, {} and "
                 "{}",
                 o.window.dilation[0], o.window.dilation[1], o.divisor);
  return pool2d_shape(x, o.window, "avg_pool2d");
}

void check_gradient(const Tensor& dy, const Shape& wanted, const char* op) {
  LOCKSTEP_CHECK(dy.shape() == wanted, "{}: expected a gradient {} but got {}", op, wanted,
                 dy.shape());
}

Shape adaptive_shape(const Shape& x, std::int64_t p, std::int64_t q) {
  LOCKSTEP_CHECK(x.rank() == 4 && x[2] >= 1 && x[3] >= 1 && p >= 1 && q >= 1,
                 "adaptive_avg_pool2d: expected images (N, C, H, W) and an output size, all at "
                 "least 1, but got {} and {} x {}",
                 x, p, q);
  return {x[0], x[1], p, q};
}

}  // namespace

Tensor avg_pool2d_forward(const Tensor& x, const AvgPool2dOptions& options) {
  const Shape shape = checked_shape(x.shape(), options);
  return forward(x, shape, fixed_windows(x.shape(), shape, options), "avg_pool2d");
}

Tensor avg_pool2d_backward(const Tensor& dy, const Shape& x, const AvgPool2dOptions& options) {
  const Shape shape = checked_shape(x, options);
  check_gradient(dy, shape, "avg_pool2d");
  return backward(dy, x, fixed_windows(x, shape, options), "avg_pool2d");
}

Tensor adaptive_avg_pool2d_forward(const Tensor& x, std::int64_t p, std::int64_t q) {
  return forward(x, adaptive_shape(x.shape(), p, q), adaptive_windows(x.shape(), p, q),
                 "adaptive_avg_pool2d");
}

Tensor adaptive_avg_pool2d_backward(const Tensor& dy, const Shape& x) {
  LOCKSTEP_CHECK(dy.dim() == 4, "adaptive_avg_pool2d: expected a gradient (N, C, P, Q) but got {}",
                 dy.shape());
  const std::int64_t p = dy.shape()[2], q = dy.shape()[3];
  check_gradient(dy, adaptive_shape(x, p, q), "adaptive_avg_pool2d");
  return backward(dy, x, adaptive_windows(x, p, q), "adaptive_avg_pool2d");
}

}  // namespace lockstep::kernels
