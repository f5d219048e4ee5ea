// The in-place operations of arithmetic.h.
#include "lockstep/autograd/ops/arithmetic.h"
#include "lockstep/autograd/ops/broadcast.h"
#include "lockstep/autograd/record.h"
#include "lockstep/kernels/arithmetic.h"

namespace lockstep {
namespace {

// The value before the change, if someone's gradient needs it.
Tensor copy_if(bool wanted, const Variable& x) { return wanted ? x.data().clone() : Tensor(); }

// b for x's gradient. Where b shares x's memory (x *= x) the change itself would spoil it.
SavedTensor save_factor(const Variable& x, const Variable& b) {
  return SavedTensor(b.data().shares_storage_with(x.data()) ? b.data().clone() : b.data());
}

}  // namespace

Variable& add_(Variable& x, const Variable& b) {
  record_in_place(
      "add_", x, inputs(x, b), [&](const Tensor& t) { kernels::add_into(t, t, b.data()); },
      [&] {
        return [fb = InputForm(b)](const Tensor& dy, Gradients& dx) {
          dx.set(0, [&] { return dy; });
          dx.set(1, [&] { return fb.undo(dy); });
        };
      });
  return x;
}

Variable& sub_(Variable& x, const Variable& b) {
  record_in_place(
      "sub_", x, inputs(x, b), [&](const Tensor& t) { kernels::sub_into(t, t, b.data()); },
      [&] {
        return [fb = InputForm(b)](const Tensor& dy, Gradients& dx) {
          dx.set(0, [&] { return dy; });
          dx.set(1, [&] { return kernels::neg(fb.undo(dy)); });
        };
      });
  return x;
}

Variable& mul_(Variable& x, const Variable& b) {
  record_in_place(
      "mul_", x, inputs(x, b), [&](const Tensor& t) { kernels::mul_into(t, t, b.data()); },
      [&] {
        return [fx = InputForm(x), fb = InputForm(b), old = copy_if(b.requires_grad(), x),
                sb = save_factor(x, b)](const Tensor& dy, Gradients& dx) {
          dx.set(0, [&] { return fx.undo(kernels::mul(dy, sb.get())); });
          dx.set(1, [&] { return fb.undo(kernels::mul(dy, old)); });
        };
      });
  return x;
}

Variable& div_(Variable& x, const Variable& b) {
  record_in_place(
      "div_", x, inputs(x, b), [&](const Tensor& t) { kernels::div_into(t, t, b.data()); },
      [&] {
        return [fx = InputForm(x), fb = InputForm(b), old = copy_if(b.requires_grad(), x),
                sb = save_factor(x, b)](const Tensor& dy, Gradients& dx) {
          dx.set(0, [&] { return fx.undo(kernels::div(dy, sb.get())); });
          dx.set(1, [&] {
            const Tensor slope = kernels::div(kernels::div(old, sb.get()), sb.get());
            return fb.undo(kernels::neg(kernels::mul(dy, slope)));
          });
        };
      });
  return x;
}

Variable& add_(Variable& x, Scalar b) {
  record_in_place(
      "add_", x, inputs(x), [&](const Tensor& t) { kernels::add_into(t, t, b); },
      [] { return [](const Tensor& dy, Gradients& dx) { dx.set(0, [&] { return dy; }); }; });
  return x;
}

Variable& mul_(Variable& x, Scalar b) {
  record_in_place(
      "mul_", x, inputs(x), [&](const Tensor& t) { kernels::mul_into(t, t, b); },
      [&] {
        return [b](const Tensor& dy, Gradients& dx) {
          dx.set(0, [&] { return kernels::mul(dy, b); });
        };
      });
  return x;
}

Variable& copy_(Variable& x, const Variable& src) {
  record_in_place(
      "copy_", x, inputs(x, src), [&](const Tensor& t) { kernels::copy_into(t, src.data()); },
      [&] {
        return [form = InputForm(src)](const Tensor& dy, Gradients& dx) {
          dx.set(0, [&] { return zeros_like(dy); });
          dx.set(1, [&] { return form.undo(dy); });
        };
      });
  return x;
}

Variable& fill_(Variable& x, Scalar value) {
  record_in_place(
      "fill_", x, inputs(x), [&](const Tensor& t) { kernels::fill(t, value); },
      [] {
        return [](const Tensor& dy, Gradients& dx) { dx.set(0, [&] { return zeros_like(dy); }); };
      });
  return x;
}

}  // namespace lockstep
