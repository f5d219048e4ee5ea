// Convolution as a product of matrices: the windows of an image as rows of a matrix (im2col), in
// the order (r, s, c) that channels-last images and channels-last weights share.
#include <algorithm>
#include <cstring>

#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/conv2d_plan.h"
#include "lockstep/kernels/gemm.h"

namespace lockstep::kernels {
namespace {

// A 1x1 window on each pixel: the image itself is the matrix.
bool is_pointwise(const ConvPlan& p) {
  return p.kh == 1 && p.kw == 1 && p.stride[0] == 1 && p.stride[1] == 1 && p.padding[0] == 0 &&
         p.padding[1] == 0;
}

// Calls f(row, tap, pixel) for rows of output rows [begin, end) with the input pixel of each tap,
// -1 outside the image.
template <class F>
void for_each_tap(const ConvPlan& p, std::int64_t begin, std::int64_t end, const F& f) {
  for (std::int64_t oy = begin; oy < end; ++oy)
    for (std::int64_t ox = 0; ox < p.ow; ++ox)
      for (std::int64_t r = 0; r < p.kh; ++r) {
        const std::int64_t y = oy * p.stride[0] - p.padding[0] + r * p.dilation[0];
        for (std::int64_t s = 0; s < p.kw; ++s) {
          const std::int64_t x = ox * p.stride[1] - p.padding[1] + s * p.dilation[1];
          const bool in = y >= 0 && y < p.ih && x >= 0 && x < p.iw;
          f(oy * p.ow + ox, r * p.kw + s, in ? y * p.iw + x : -1);
        }
      }
}

template <class T>
void image_to_columns(const ConvPlan& p, const T* image, std::int64_t group, T* columns) {
  const std::int64_t c = p.ic / p.groups, taps = p.kh * p.kw;
  for_each_tap(p, 0, p.oh, [&](std::int64_t row, std::int64_t tap, std::int64_t pixel) {
    T* to = columns + (row * taps + tap) * c;
    if (pixel < 0)
      std::memset(static_cast<void*>(to), 0, c * sizeof(T));
    else
      std::memcpy(static_cast<void*>(to), image + pixel * p.ic + group * c, c * sizeof(T));
  });
}

// image += columns, where windows overlap several times.
template <class T>
void columns_to_image(const ConvPlan& p, const T* columns, std::int64_t group, T* image) {
  const std::int64_t c = p.ic / p.groups, taps = p.kh * p.kw;
  for_each_tap(p, 0, p.oh, [&](std::int64_t row, std::int64_t tap, std::int64_t pixel) {
    if (pixel < 0) return;
    const T* from = columns + (row * taps + tap) * c;
    T* to = image + pixel * p.ic + group * c;
    for (std::int64_t i = 0; i < c; ++i) to[i] += from[i];
  });
}

Tensor matrix(const Tensor& t, std::int64_t offset, std::int64_t rows, std::int64_t cols,
              std::int64_t row_stride) {
  return t.as_strided({rows, cols}, {row_stride, 1}, t.offset() + offset);
}

// One image and one group of each operand as matrices.
struct Operands {
  const ConvPlan& p;
  std::int64_t pixels = p.oh * p.ow, k = p.oc / p.groups, c = p.ic / p.groups;

  Tensor y(const Tensor& y, std::int64_t n, std::int64_t g) const {  // (P Q, K/G)
    return matrix(y, n * p.y_image() + g * k, pixels, k, p.oc);
  }
  Tensor x(const Tensor& x, std::int64_t n, std::int64_t g) const {  // pointwise: (H W, C/G)
    return matrix(x, n * p.x_image() + g * c, pixels, c, p.ic);
  }
  Tensor w(const Tensor& w, std::int64_t g) const {  // channels-last weights: (K/G, R S C/G)
    return matrix(w, g * k * p.taps(), k, p.taps(), p.taps());
  }
};

// Images per thread, so that each has enough to do to be worth waking.
std::int64_t image_grain(const ConvPlan& p) {
  constexpr std::int64_t kProducts = 200000;
  return kProducts / std::max<std::int64_t>(p.y_image() * p.taps(), 1) + 1;
}

}  // namespace

void conv2d_gemm_forward(const ConvPlan& p, const Tensor& x, const Tensor& w, const Tensor& b,
                         const Tensor& y) {
  const Tensor w_last = w.contiguous(MemoryFormat::kChannelsLast);
  const Operands of{p};
  visit_floating(x.dtype(), "conv2d", [&]<class T>() {
    parallel_for(p.n, image_grain(p), [&](std::int64_t begin, std::int64_t end) {
      const Tensor buffer =
          is_pointwise(p) ? Tensor() : empty({of.pixels, p.taps()}, {.dtype = x.dtype()});
      for (std::int64_t n = begin; n < end; ++n) {
        T* out = y.data<T>() + n * p.y_image();
        for (std::int64_t i = 0; b.defined() && i < of.pixels; ++i)
          std::memcpy(static_cast<void*>(out + i * p.oc), b.data(), p.oc * sizeof(T));
        for (std::int64_t g = 0; g < p.groups; ++g) {
          if (buffer.defined())
            image_to_columns(p, x.data<T>() + n * p.x_image(), g, buffer.data<T>());
          const Tensor columns = buffer.defined() ? buffer : of.x(x, n, g);
          gemm(columns, of.w(w_last, g).t(), of.y(y, n, g), b.defined());
        }
      }
    });
  });
}

void conv2d_gemm_backward_data(const ConvPlan& p, const Tensor& dy, const Tensor& w,
                               const Tensor& dx) {
  const Tensor w_last = w.contiguous(MemoryFormat::kChannelsLast);
  const Operands of{p};
  visit_floating(dy.dtype(), "conv2d", [&]<class T>() {
    parallel_for(p.n, image_grain(p), [&](std::int64_t begin, std::int64_t end) {
      const Tensor buffer =
          is_pointwise(p) ? Tensor() : empty({of.pixels, p.taps()}, {.dtype = dy.dtype()});
      for (std::int64_t n = begin; n < end; ++n) {
        T* image = dx.data<T>() + n * p.x_image();
        if (buffer.defined()) std::memset(static_cast<void*>(image), 0, p.x_image() * sizeof(T));
        for (std::int64_t g = 0; g < p.groups; ++g) {
          gemm(of.y(dy, n, g), of.w(w_last, g), buffer.defined() ? buffer : of.x(dx, n, g));
          if (buffer.defined()) columns_to_image(p, buffer.data<T>(), g, image);
        }
      }
    });
  });
}

void conv2d_gemm_backward_weights(const ConvPlan& p, const Tensor& dy, const Tensor& x,
                                  const Tensor& dw) {
  const Tensor dw_last =
      empty(dw.shape(), {.dtype = dw.dtype(), .format = MemoryFormat::kChannelsLast});
  const Operands of{p};
  const Tensor buffer =
      is_pointwise(p) ? Tensor() : empty({of.pixels, p.taps()}, {.dtype = x.dtype()});
  visit_floating(x.dtype(), "conv2d", [&]<class T>() {
    for (std::int64_t n = 0; n < p.n; ++n)
      for (std::int64_t g = 0; g < p.groups; ++g) {
        if (buffer.defined())
          image_to_columns(p, x.data<T>() + n * p.x_image(), g, buffer.data<T>());
        const Tensor columns = buffer.defined() ? buffer : of.x(x, n, g);
        gemm(of.y(dy, n, g).t(), columns, of.w(dw_last, g), n > 0);
      }
  });
  copy_elements(dw, dw_last);
}

}  // namespace lockstep::kernels
