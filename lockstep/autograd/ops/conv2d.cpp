#include "lockstep/autograd/ops/conv2d.h"

#include "lockstep/autograd/record.h"
#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/image_layout.h"

namespace lockstep {
namespace {

struct Saved {
  SavedTensor x, w;
  kernels::Conv2dOptions options;

  void backward(const Tensor& given, Gradients& dx) const {
    const Tensor dy = kernels::channels_last(given, "conv2d");  // once for both gradients
    dx.set(0, [&] { return kernels::conv2d_backward_data(dy, w.get(), x.get().shape(), options); });
    if (!dx.needs(1) && !dx.needs(2)) return;
    auto of_weights =
        kernels::conv2d_backward_weights(dy, x.get(), w.get().shape(), dx.needs(2), options);
    dx.set(1, [&] { return of_weights.dw; });
    dx.set(2, [&] { return of_weights.db; });
  }
};

Tensor value(const Variable& v) { return v.defined() ? v.data() : Tensor(); }

}  // namespace

Variable conv2d(const Variable& x, const Variable& w, const Variable& b,
                const kernels::Conv2dOptions& options) {
  const Tensor images = kernels::channels_last(x.data(), "conv2d");
  return record("conv2d", kernels::conv2d_forward(images, w.data(), value(b), options),
                inputs(x, w, b), [&](const Tensor&) {
                  return [saved = Saved{SavedTensor(images), SavedTensor(w.data()), options}](
                             const Tensor& dy, Gradients& dx) { saved.backward(dy, dx); };
                });
}

Variable conv2d_relu(const Variable& x, const Variable& w, const Variable& b,
                     const kernels::Conv2dOptions& options) {
  const Tensor images = kernels::channels_last(x.data(), "conv2d");
  return record("conv2d_relu", kernels::conv2d_forward(images, w.data(), value(b), options, true),
                inputs(x, w, b), [&](const Tensor& y) {
                  return [saved = Saved{SavedTensor(images), SavedTensor(w.data()), options},
                          y = SavedTensor(y)](const Tensor& dy, Gradients& dx) {
                    saved.backward(kernels::relu_backward(dy, y.get()), dx);
                  };
                });
}

}  // namespace lockstep
