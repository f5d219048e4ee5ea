#include "lockstep/autograd/ops/elementary.h"

#include "lockstep/autograd/record.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/transcendental.h"

namespace lockstep {

Variable abs(const Variable& x) {
  return record("abs", kernels::abs(x.data()), inputs(x), [&](const Tensor&) {
    return [x = SavedTensor(x.data())](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::mul(dy, kernels::sign(x.get())); });
    };
  });
}

Variable square(const Variable& x) {
  return record("square", kernels::square(x.data()), inputs(x), [&](const Tensor&) {
    return [x = SavedTensor(x.data())](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::mul(dy, kernels::mul(x.get(), 2)); });
    };
  });
}

Variable sqrt(const Variable& x) {
  return record("sqrt", kernels::sqrt(x.data()), inputs(x), [&](const Tensor& y) {
    return [y = SavedTensor(y)](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::div(dy, kernels::mul(y.get(), 2)); });
    };
  });
}

Variable rsqrt(const Variable& x) {
  return record("rsqrt", kernels::rsqrt(x.data()), inputs(x), [&](const Tensor& y) {
    return [y = SavedTensor(y)](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] {
        const Tensor cube = kernels::mul(kernels::square(y.get()), y.get());
        return kernels::mul(dy, kernels::mul(cube, -0.5));
      });
    };
  });
}

Variable reciprocal(const Variable& x) {
  return record("reciprocal", kernels::reciprocal(x.data()), inputs(x), [&](const Tensor& y) {
    return [y = SavedTensor(y)](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::neg(kernels::mul(dy, kernels::square(y.get()))); });
    };
  });
}

Variable exp(const Variable& x) {
  return record("exp", kernels::exp(x.data()), inputs(x), [&](const Tensor& y) {
    return [y = SavedTensor(y)](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::mul(dy, y.get()); });
    };
  });
}

Variable log(const Variable& x) {
  return record("log", kernels::log(x.data()), inputs(x), [&](const Tensor&) {
    return [x = SavedTensor(x.data())](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::div(dy, x.get()); });
    };
  });
}

Variable log1p(const Variable& x) {
  return record("log1p", kernels::log1p(x.data()), inputs(x), [&](const Tensor&) {
    return [x = SavedTensor(x.data())](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::div(dy, kernels::add(x.get(), 1)); });
    };
  });
}

Variable sin(const Variable& x) {
  return record("sin", kernels::sin(x.data()), inputs(x), [&](const Tensor&) {
    return [x = SavedTensor(x.data())](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::mul(dy, kernels::cos(x.get())); });
    };
  });
}

Variable cos(const Variable& x) {
  return record("cos", kernels::cos(x.data()), inputs(x), [&](const Tensor&) {
    return [x = SavedTensor(x.data())](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::neg(kernels::mul(dy, kernels::sin(x.get()))); });
    };
  });
}

Variable erf(const Variable& x) {
  return record("erf", kernels::erf(x.data()), inputs(x), [&](const Tensor&) {
    return [x = SavedTensor(x.data())](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] {
        constexpr double kSlope = 1.12837916709551257390;  // 2 / sqrt(pi)
        const Tensor bell = kernels::exp(kernels::neg(kernels::square(x.get())));
        return kernels::mul(dy, kernels::mul(bell, kSlope));
      });
    };
  });
}

}  // namespace lockstep
