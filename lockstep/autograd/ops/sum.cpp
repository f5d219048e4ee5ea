#include "lockstep/autograd/ops/sum.h"

#include "lockstep/autograd/record.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/reduction.h"
#include "lockstep/kernels/sum.h"

namespace lockstep {
namespace {

// What brings the gradient of a reduction back to the input's shape, as a view of stride 0.
struct Spread {
  Shape shape;
  unsigned axes;
  DType dtype;

  Tensor operator()(const Tensor& dy) const {
    return kernels::cast(dy, dtype)
        .reshape(kernels::reduced_shape(shape, axes, true))
        .expand(shape);
  }
};

}  // namespace

Variable sum(const Variable& x, const Shape& axes, bool keepdim, std::optional<DType> dtype) {
  return record("sum", kernels::sum(x.data(), axes, keepdim, dtype), inputs(x), [&](const Tensor&) {
    return [spread = Spread{x.shape(), kernels::axis_set(axes, x.dim(), "sum"), x.dtype()}](
               const Tensor& dy, Gradients& dx) { dx.set(0, [&] { return spread(dy); }); };
  });
}

Variable mean(const Variable& x, const Shape& axes, bool keepdim, std::optional<DType> dtype) {
  return record(
      "mean", kernels::mean(x.data(), axes, keepdim, dtype), inputs(x), [&](const Tensor&) {
        return [spread = Spread{x.shape(), kernels::axis_set(axes, x.dim(), "mean"), x.dtype()}](
                   const Tensor& dy, Gradients& dx) {
          dx.set(0, [&] {
            const auto count =
                static_cast<double>(kernels::reduced_count(spread.shape, spread.axes));
            return spread(kernels::div(dy, count));
          });
        };
      });
}

}  // namespace lockstep
