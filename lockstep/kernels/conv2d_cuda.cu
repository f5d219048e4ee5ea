// Convolutions as products of matrices that are never formed (implicit GEMM): the tiles read images
// where they lie. A group is a batch.
//
//   forward        y[(n,p,q), k]     = sum over (r,s,c) of windows of x times w[k, (r,s,c)]
//   data gradient  dx[(n,h,w), c]    = sum over (r,s,k) of windows of dy times w[(r,s,k), c]
//   weights        dw[k, (r,s,c)]    = sum over (n,p,q) of dy[(n,p,q), k] times windows of x
#include "lockstep/kernels/conv2d_cuda.h"

#include <string>

#include "lockstep/core/device_guard.h"
#include "lockstep/core/error.h"
#include "lockstep/kernels/conv2d_gradient_operands.cuh"
#include "lockstep/kernels/conv2d_windows.cuh"
#include "lockstep/kernels/gemm_operand.cuh"
#include "lockstep/kernels/gemm_split.cuh"

namespace lockstep::kernels::cuda {
namespace {

// The kernels count pixels and taps in 32 bits.
constexpr std::int64_t kMostPixels = (std::int64_t{1} << 31) - 1;

ConvShape shape_of(const ConvPlan& p) {
  const auto u32 = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
  ConvShape shape{.ih = u32(p.ih),
                  .iw = u32(p.iw),
                  .oh = u32(p.oh),
                  .ow = u32(p.ow),
                  .kw = u32(p.kw),
                  .x_channels = u32(p.ic),
                  .y_channels = u32(p.oc),
                  .c = u32(p.ic / p.groups),
                  .k = u32(p.oc / p.groups)};
  for (int i = 0; i < 2; ++i) {
    shape.stride[i] = static_cast<std::int32_t>(p.stride[i]);
    shape.padding[i] = static_cast<std::int32_t>(p.padding[i]);
    shape.dilation[i] = static_cast<std::int32_t>(p.dilation[i]);
  }
  return shape;
}

// f(part of the plan, first image, how many images) for as many images at a time as can be counted.
template <class F>
void for_each_part(const ConvPlan& p, F&& f) {
  const std::int64_t pixels = std::max(p.ih * p.iw, p.oh * p.ow);
  const std::int64_t taps = p.kh * p.kw * std::max(p.ic, p.oc);
  if (pixels > kMostPixels || taps > kMostPixels)
    throw Error("conv2d: images of " + std::to_string(pixels) + " pixels and windows of " +
                std::to_string(taps) + " elements are more than a CUDA device's kernel counts (" +
                std::to_string(kMostPixels) + ")");
  const std::int64_t at_once = kMostPixels / pixels;
  for (std::int64_t first = 0; first < p.n; first += at_once) {
    ConvPlan part = p;
    part.n = std::min(at_once, p.n - first);
    f(part, first);
  }
}

template <class T>
bool has_quads(const T* data, std::int64_t a, std::int64_t b) {
  return a % 4 == 0 && b % 4 == 0 && reinterpret_cast<std::uintptr_t>(data) % (4 * sizeof(T)) == 0;
}

template <class T, bool taps_are_k>
WindowsOfX<T, taps_are_k> windows_of(const ConvPlan& p, const T* x) {
  WindowsOfX<T, taps_are_k> out;
  out.x = x;
  out.shape = shape_of(p);
  out.pixels = static_cast<std::uint64_t>(p.n * p.oh * p.ow);
  out.taps = static_cast<std::uint64_t>(p.taps());
  out.k = taps_are_k ? out.taps : out.pixels;
  out.vectors = has_quads(x, p.ic, p.ic / p.groups);
  return out;
}

// (pixels, channels) of an image, a group's channels at a time.
template <class T>
MatrixOut<T> pixels_out(T* data, std::int64_t pixels, std::int64_t channels, std::int64_t groups) {
  const std::int64_t of_group = channels / groups;
  MatrixOut<T> out;
  out.data = data;
  out.rows = static_cast<std::uint64_t>(pixels);
  out.columns = out.batch_stride = out.bias_batch_stride = static_cast<std::uint64_t>(of_group);
  out.row_stride = static_cast<std::uint64_t>(channels);
  out.vectors = has_quads(data, channels, of_group);
  return out;
}

unsigned batches_of(const ConvPlan& p) {
  constexpr std::int64_t kMostBatches = 65535;
  if (p.groups > kMostBatches)
    throw Error("conv2d: a CUDA device's kernel has at most " + std::to_string(kMostBatches) +
                " groups but got " + std::to_string(p.groups));
  return static_cast<unsigned>(p.groups);
}

template <class T>
void forward(const ConvPlan& p, const T* x, const Tensor& w, const Tensor& b, bool relu, T* y) {
  StridedOperand<T, true> weights;
  weights.data = elements<T>(w);
  weights.outer = static_cast<std::uint64_t>(p.oc / p.groups);
  weights.k = static_cast<std::uint64_t>(p.taps());
  weights.outer_stride = p.taps();
  weights.k_stride = 1;
  weights.batch_stride = p.oc / p.groups * p.taps();
  weights.vectors = has_quads(weights.data, p.taps(), 0);
  MatrixOut<T> out = pixels_out(y, p.n * p.oh * p.ow, p.oc, p.groups);
  out.bias = b.defined() ? elements<T>(b) : nullptr;
  out.relu = relu;
  multiply_tiles<T>("conv2d", windows_of<T, true>(p, x), weights, out, batches_of(p), w.device());
}

template <class T>
void backward_data(const ConvPlan& p, const T* dy, const Tensor& w, T* dx) {
  WindowsOfY<T> windows;
  windows.dy = dy;
  windows.shape = shape_of(p);
  windows.pixels = static_cast<std::uint64_t>(p.n * p.ih * p.iw);
  windows.k = static_cast<std::uint64_t>(p.kh * p.kw * (p.oc / p.groups));
  windows.vectors = has_quads(dy, p.oc, p.oc / p.groups);
  TurnedWeights<T> weights;
  weights.w = elements<T>(w);
  weights.shape = windows.shape;
  weights.taps = static_cast<std::uint64_t>(p.taps());
  weights.k = windows.k;
  weights.vectors = has_quads(weights.w, p.ic / p.groups, 0);
  multiply_tiles<T>("conv2d_backward_data", windows, weights,
                    pixels_out(dx, p.n * p.ih * p.iw, p.ic, p.groups), batches_of(p), w.device());
}

template <class T>
void backward_weights(const ConvPlan& p, const T* dy, const T* x, bool accumulate,
                      const Tensor& dw) {
  StridedOperand<T, false> gradients;
  gradients.data = dy;
  gradients.outer = static_cast<std::uint64_t>(p.oc / p.groups);
  gradients.k = static_cast<std::uint64_t>(p.n * p.oh * p.ow);
  gradients.outer_stride = 1;
  gradients.k_stride = p.oc;
  gradients.batch_stride = p.oc / p.groups;
  gradients.vectors = has_quads(dy, p.oc, p.oc / p.groups);
  MatrixOut<T> out;
  out.data = elements<T>(dw);
  out.rows = gradients.outer;
  out.columns = out.row_stride = static_cast<std::uint64_t>(p.taps());
  out.batch_stride = out.rows * out.columns;
  out.accumulate = accumulate;
  out.vectors = has_quads(out.data, p.taps(), 0);
  multiply_tiles<T>("conv2d_backward_weights", gradients, windows_of<T, false>(p, x), out,
                    batches_of(p), dw.device());
}

}  // namespace

void conv2d_forward(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& b,
                    bool relu, const Tensor& y) {
  const DeviceGuard guard(x.device());
  visit_device_floating(x.dtype(), "conv2d", [&]<class T>() {
    for_each_part(plan, [&](const ConvPlan& p, std::int64_t image) {
      forward(p, elements<const T>(x) + image * p.x_image(), w, b, relu,
              elements<T>(y) + image * p.y_image());
    });
  });
}

void conv2d_backward_data(const ConvPlan& plan, const Tensor& dy, const Tensor& w,
                          const Tensor& dx) {
  const DeviceGuard guard(dy.device());
  visit_device_floating(dy.dtype(), "conv2d", [&]<class T>() {
    for_each_part(plan, [&](const ConvPlan& p, std::int64_t image) {
      backward_data(p, elements<const T>(dy) + image * p.y_image(), w,
                    elements<T>(dx) + image * p.x_image());
    });
  });
}

void conv2d_backward_weights(const ConvPlan& plan, const Tensor& dy, const Tensor& x,
                             const Tensor& dw) {
  const DeviceGuard guard(dy.device());
  visit_device_floating(dy.dtype(), "conv2d", [&]<class T>() {
    for_each_part(plan, [&](const ConvPlan& p, std::int64_t image) {
      backward_weights(p, elements<const T>(dy) + image * p.y_image(),
                       elements<const T>(x) + image * p.x_image(), image > 0, dw);
    });
  });
}

}  // namespace lockstep::kernels::cuda
