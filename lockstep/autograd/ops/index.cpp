#include "lockstep/autograd/ops/index.h"

#include "lockstep/autograd/record.h"
#include "lockstep/kernels/index.h"

namespace lockstep {
namespace {

std::pair<Variable, Variable> picked(const char* name, kernels::ValuesAndIndices found,
                                     const Variable& x, std::int64_t axis) {
  Variable values = record(name, found.values, inputs(x), [&](const Tensor&) {
    return [shape = x.shape(), index = SavedTensor(found.indices), axis](const Tensor& dy,
                                                                         Gradients& dx) {
      dx.set(0, [&] { return kernels::gather_backward(dy, shape, axis, index.get()); });
    };
  });
  return {std::move(values), Variable(std::move(found.indices))};
}

}  // namespace

Variable index_select(const Variable& x, std::int64_t axis, const Variable& index) {
  Tensor y = kernels::index_select(x.data(), axis, index.data());
  return record("index_select", std::move(y), inputs(x), [&](const Tensor&) {
    return [shape = x.shape(), axis, index = SavedTensor(index.data())](const Tensor& dy,
                                                                        Gradients& dx) {
      dx.set(0, [&] { return kernels::index_select_backward(dy, shape, axis, index.get()); });
    };
  });
}

Variable gather(const Variable& x, std::int64_t axis, const Variable& index) {
  return picked("gather", {kernels::gather(x.data(), axis, index.data()), index.data()}, x, axis)
      .first;
}

std::pair<Variable, Variable> sort(const Variable& x, std::int64_t axis, bool descending) {
  return picked("sort", kernels::sort(x.data(), axis, descending), x, axis);
}

std::pair<Variable, Variable> topk(const Variable& x, std::int64_t k, std::int64_t axis,
                                   bool largest) {
  return picked("topk", kernels::topk(x.data(), k, axis, largest), x, axis);
}

}  // namespace lockstep
