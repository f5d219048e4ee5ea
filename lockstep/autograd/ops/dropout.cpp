// Dropout in the graph.
#include "lockstep/autograd/ops/dropout.h"

#include "lockstep/autograd/record.h"
#include "lockstep/core/check.h"
#include "lockstep/kernels/dropout.h"

namespace lockstep {

Variable dropout(const Variable& x, double p, bool training, Generator& generator) {
  LOCKSTEP_CHECK(p >= 0 && p <= 1, "dropout: probability is {}, must be in [0, 1]", p);
  if (!training || p == 0) return x;
  const PhiloxSequence sequence = generator.philox(static_cast<std::uint64_t>(x.numel()));
  return record("dropout", kernels::dropout_forward(x.data(), p, sequence), inputs(x),
                [&](const Tensor& y) {
                  return [strides = y.strides(), p, sequence](const Tensor& dy, Gradients& dx) {
                    dx.set(0, [&] { return kernels::dropout_backward(dy, strides, p, sequence); });
                  };
                });
}

Variable dropout(const Variable& x, double p, bool training) {
  return dropout(x, p, training, default_generator());
}

}  // namespace lockstep
