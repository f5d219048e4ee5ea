#include "lockstep/autograd/ops/arithmetic.h"

#include "lockstep/autograd/ops/broadcast.h"
#include "lockstep/autograd/record.h"
#include "lockstep/kernels/arithmetic.h"

namespace lockstep {

Variable add(const Variable& a, const Variable& b) {
  return record("add", kernels::add(a.data(), b.data()), inputs(a, b), [&](const Tensor&) {
    return [fa = InputForm(a), fb = InputForm(b)](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return fa.undo(dy); });
      dx.set(1, [&] { return fb.undo(dy); });
    };
  });
}

Variable sub(const Variable& a, const Variable& b) {
  return record("sub", kernels::sub(a.data(), b.data()), inputs(a, b), [&](const Tensor&) {
    return [fa = InputForm(a), fb = InputForm(b)](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return fa.undo(dy); });
      dx.set(1, [&] { return kernels::neg(fb.undo(dy)); });
    };
  });
}

Variable mul(const Variable& a, const Variable& b) {
  return record("mul", kernels::mul(a.data(), b.data()), inputs(a, b), [&](const Tensor&) {
    return [fa = InputForm(a), fb = InputForm(b), sa = save_if(b.requires_grad(), a),
            sb = save_if(a.requires_grad(), b)](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return fa.undo(kernels::mul(dy, sb.get())); });
      dx.set(1, [&] { return fb.undo(kernels::mul(dy, sa.get())); });
    };
  });
}

Variable div(const Variable& a, const Variable& b) {
  return record("div", kernels::div(a.data(), b.data()), inputs(a, b), [&](const Tensor&) {
    return [fa = InputForm(a), fb = InputForm(b), sa = save_if(b.requires_grad(), a),
            sb = SavedTensor(b.data())](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return fa.undo(kernels::div(dy, sb.get())); });
      dx.set(1, [&] {
        const Tensor slope = kernels::div(kernels::div(sa.get(), sb.get()), sb.get());
        return fb.undo(kernels::neg(kernels::mul(dy, slope)));
      });
    };
  });
}

Variable add(const Variable& a, Scalar b) {
  return record("add", kernels::add(a.data(), b), inputs(a), [&](const Tensor&) {
    return [](const Tensor& dy, Gradients& dx) { dx.set(0, [&] { return dy; }); };
  });
}

Variable sub(const Variable& a, Scalar b) {
  return record("sub", kernels::sub(a.data(), b), inputs(a), [&](const Tensor&) {
    return [](const Tensor& dy, Gradients& dx) { dx.set(0, [&] { return dy; }); };
  });
}

Variable mul(const Variable& a, Scalar b) {
  return record("mul", kernels::mul(a.data(), b), inputs(a), [&](const Tensor&) {
    return [b](const Tensor& dy, Gradients& dx) { dx.set(0, [&] { return kernels::mul(dy, b); }); };
  });
}

Variable div(const Variable& a, Scalar b) {
  return record("div", kernels::div(a.data(), b), inputs(a), [&](const Tensor&) {
    return [b](const Tensor& dy, Gradients& dx) { dx.set(0, [&] { return kernels::div(dy, b); }); };
  });
}

Variable sub(Scalar a, const Variable& b) {
  return record("sub", kernels::sub(a, b.data()), inputs(b), [&](const Tensor&) {
    return [](const Tensor& dy, Gradients& dx) { dx.set(0, [&] { return kernels::neg(dy); }); };
  });
}

Variable div(Scalar a, const Variable& b) {
  return record("div", kernels::div(a, b.data()), inputs(b), [&](const Tensor& y) {
    return [y = SavedTensor(y), b = SavedTensor(b.data())](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::neg(kernels::mul(dy, kernels::div(y.get(), b.get()))); });
    };
  });
}

Variable neg(const Variable& x) {
  return record("neg", kernels::neg(x.data()), inputs(x), [&](const Tensor&) {
    return [](const Tensor& dy, Gradients& dx) { dx.set(0, [&] { return kernels::neg(dy); }); };
  });
}

}  // namespace lockstep
