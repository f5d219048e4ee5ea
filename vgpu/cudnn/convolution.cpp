#include "vgpu/cudnn/convolution.h"

#include <vector>

namespace vgpu {
namespace {

// The elements as (n, h, w, c), whatever their strides are.
template <class A>
std::vector<A> gather(const cudnnTensorStruct& t, const void* data) {
  std::vector<A> values;
  values.reserve(static_cast<std::size_t>(t.count()));
  const ElementType type = element_type(t.type);
  for (std::int64_t n = 0; n < t.n; ++n)
    for (std::int64_t h = 0; h < t.h; ++h)
      for (std::int64_t w = 0; w < t.w; ++w)
        for (std::int64_t c = 0; c < t.c; ++c)
          values.push_back(load<A>(data, type, t.at(n, c, h, w)));
  return values;
}

template <class A>
void scatter(const cudnnTensorStruct& t, const std::vector<A>& values, double alpha, double beta,
             void* data) {
  const ElementType type = element_type(t.type);
  const A* from = values.data();
  for (std::int64_t n = 0; n < t.n; ++n)
    for (std::int64_t h = 0; h < t.h; ++h)
      for (std::int64_t w = 0; w < t.w; ++w)
        for (std::int64_t c = 0; c < t.c; ++c) {
          const std::int64_t at = t.at(n, c, h, w);
          A value = static_cast<A>(alpha) * *from++;
          if (beta != 0) value += static_cast<A>(beta) * load<A>(data, type, at);
          store(data, type, at, value);
        }
}

// Calls visit(x, w, y, channels) for every pair of a pixel of the output channel and of the input:
// offsets into gathered arrays, where `channels` values of x and w lie side by side.
template <class Visit>
void for_all_taps(const Convolution& c, const Visit& visit) {
  const std::int64_t per_group = c.w.c, outputs = c.y.c / c.how.groups;
  const bool flipped = c.how.mode == CUDNN_CONVOLUTION;
  for (std::int64_t i = 0; i < c.x.n; ++i) {
    const std::int64_t n = c.reversed ? c.x.n - 1 - i : i;
    for (std::int64_t p = 0; p < c.y.h; ++p)
      for (std::int64_t q = 0; q < c.y.w; ++q)
        for (std::int64_t k = 0; k < c.y.c; ++k)
          for (std::int64_t r = 0; r < c.w.h; ++r) {
            const std::int64_t h = p * c.how.stride_h - c.how.pad_h + r * c.how.dilation_h;
            if (h < 0 || h >= c.x.h) continue;
            for (std::int64_t s = 0; s < c.w.w; ++s) {
              const std::int64_t w = q * c.how.stride_w - c.how.pad_w + s * c.how.dilation_w;
              if (w < 0 || w >= c.x.w) continue;
              const std::int64_t row = flipped ? c.w.h - 1 - r : r,
                                 col = flipped ? c.w.w - 1 - s : s;
              visit(((n * c.x.h + h) * c.x.w + w) * c.x.c + k / outputs * per_group,
                    ((k * c.w.h + row) * c.w.w + col) * per_group,
                    ((n * c.y.h + p) * c.y.w + q) * c.y.c + k, per_group);
            }
          }
  }
}

template <class A>
void forward(const Convolution& c, double alpha, const void* x_data, const void* w_data,
             double beta, void* y_data) {
  const std::vector<A> x = gather<A>(c.x, x_data), w = gather<A>(c.w, w_data);
  std::vector<A> y(static_cast<std::size_t>(c.y.count()));
  for_all_taps(c, [&](std::int64_t i, std::int64_t j, std::int64_t o, std::int64_t channels) {
    A sum{};
    for (std::int64_t l = 0; l < channels; ++l) sum += x.data()[i + l] * w.data()[j + l];
    y.data()[o] += sum;
  });
  scatter(c.y, y, alpha, beta, y_data);
}

template <class A>
void backward_data(const Convolution& c, double alpha, const void* w_data, const void* dy_data,
                   double beta, void* dx_data) {
  const std::vector<A> w = gather<A>(c.w, w_data), dy = gather<A>(c.y, dy_data);
  std::vector<A> dx(static_cast<std::size_t>(c.x.count()));
  for_all_taps(c, [&](std::int64_t i, std::int64_t j, std::int64_t o, std::int64_t channels) {
    for (std::int64_t l = 0; l < channels; ++l) dx.data()[i + l] += dy.data()[o] * w.data()[j + l];
  });
  scatter(c.x, dx, alpha, beta, dx_data);
}

template <class A>
void backward_filter(const Convolution& c, double alpha, const void* x_data, const void* dy_data,
                     double beta, void* dw_data) {
  const std::vector<A> x = gather<A>(c.x, x_data), dy = gather<A>(c.y, dy_data);
  std::vector<A> dw(static_cast<std::size_t>(c.w.count()));
  for_all_taps(c, [&](std::int64_t i, std::int64_t j, std::int64_t o, std::int64_t channels) {
    for (std::int64_t l = 0; l < channels; ++l) dw.data()[j + l] += dy.data()[o] * x.data()[i + l];
  });
  scatter(c.w, dw, alpha, beta, dw_data);
}

std::int64_t outputs(std::int64_t size, std::int64_t pad, std::int64_t dilation,
                     std::int64_t filter, std::int64_t stride) {
  return (size + 2 * pad - (dilation * (filter - 1) + 1)) / stride + 1;
}

}  // namespace

std::int64_t Convolution::rows() const {
  return outputs(x.h, how.pad_h, how.dilation_h, w.h, how.stride_h);
}
std::int64_t Convolution::cols() const {
  return outputs(x.w, how.pad_w, how.dilation_w, w.w, how.stride_w);
}

void convolve_forward(const Convolution& c, double alpha, const void* x, const void* w, double beta,
                      void* y) {
  c.how.compute == CUDNN_DATA_DOUBLE ? forward<double>(c, alpha, x, w, beta, y)
                                     : forward<float>(c, alpha, x, w, beta, y);
}

void convolve_backward_data(const Convolution& c, double alpha, const void* w, const void* dy,
                            double beta, void* dx) {
  c.how.compute == CUDNN_DATA_DOUBLE ? backward_data<double>(c, alpha, w, dy, beta, dx)
                                     : backward_data<float>(c, alpha, w, dy, beta, dx);
}

void convolve_backward_filter(const Convolution& c, double alpha, const void* x, const void* dy,
                              double beta, void* dw) {
  c.how.compute == CUDNN_DATA_DOUBLE ? backward_filter<double>(c, alpha, x, dy, beta, dw)
                                     : backward_filter<float>(c, alpha, x, dy, beta, dw);
}

void sum_channels(const cudnnTensorStruct& dy_desc, double alpha, const void* dy, double beta,
                  const cudnnTensorStruct& db_desc, void* db) {
  const std::vector<double> values = gather<double>(dy_desc, dy);
  std::vector<double> sums(static_cast<std::size_t>(dy_desc.c));
  for (std::size_t i = 0; i < values.size(); ++i) sums[i % sums.size()] += values[i];
  scatter(db_desc, sums, alpha, beta, db);
}

}  // namespace vgpu
