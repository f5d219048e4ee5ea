// From tensors to what an element-wise kernel is told.
#include <cstdint>

#include "lockstep/core/current_stream.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/loop_plan.h"
#include "lockstep/kernels/pointwise_cuda.h"
#include "lockstep/kernels/vector_access.h"

namespace lockstep::kernels::cuda {
namespace {

bool same_elements(const Tensor& a, const Tensor& b) {
  return a.data() == b.data() && a.strides() == b.strides() && a.shape() == b.shape() &&
         a.dtype() == b.dtype();
}

bool has_vector_rows(const PointwiseJob& job) {
  const auto per_vector = static_cast<std::int64_t>(kVectorBytes / dtype_size(job.dtype[0]));
  if (job.n >= std::int64_t{1} << 31 || job.size[0] % per_vector != 0) return false;
  for (int k = 0; k <= job.inputs; ++k) {
    const void* data = k == 0 ? job.out : job.in[k - 1];
    if (!data) continue;  // a number
    const std::int64_t along = job.stride[0][k];
    if (job.dtype[k] != job.dtype[0] || (k == 0 ? along != 1 : along != 0 && along != 1))
      return false;
    if (along == 0) continue;
    if (!is_vector_aligned(data)) return false;
    for (int axis = 1; axis < job.rank; ++axis)
      if (job.stride[axis][k] % per_vector != 0) return false;
  }
  return true;
}

}  // namespace

PointwiseJob plan_pointwise(const char* name, const Tensor& out, DType compute,
                            std::span<const Operand> inputs, Tensor* copies) {
  Operand all[kMaxPointwiseInputs + 1] = {out, 0, 0, 0};
  for (std::size_t k = 0; k < inputs.size(); ++k) all[k + 1] = inputs[k];
  common_device(name, {all, inputs.size() + 1});
  PointwiseJob job;
  job.name = name;
  job.device = out.device();
  job.stream = current_native_stream(out.device());
  job.n = out.numel();
  job.inputs = static_cast<int>(inputs.size());
  job.out = out.data();
  job.dtype[0] = out.dtype();
  job.compute = compute;
  job.packed = out.is_dense() && is_vector_aligned(job.out);
  PlanOperand operands[kMaxOperands] = {{&out.shape(), &out.strides()}};
  const Shape number_shape;
  DType shared = compute;
  bool first = true;
  for (int k = 0; k < job.inputs; ++k) {
    const Operand& x = inputs[k];
    if (!x.is_tensor()) {
      const Scalar& s = x.scalar();
      job.real[k] = s.real();
      job.integer[k] = s.is_integer() ? s.integer() : static_cast<std::int64_t>(s.real());
      job.dtype[k + 1] = compute;
      operands[k + 1] = {&number_shape, &number_shape};
      continue;
    }
    const Tensor* t = &x.tensor();
    if (t->shares_storage_with(out) && !same_elements(*t, out)) {
      copies[k] = t->clone();
      t = &copies[k];
    }
    job.in[k] = t->data();
    job.dtype[k + 1] = t->dtype();
    operands[k + 1] = {&t->shape(), &t->strides()};
    if (first) shared = t->dtype();
    first = false;
    job.packed = job.packed && t->dtype() == shared && t->shape() == out.shape() &&
                 t->strides() == out.strides() && is_vector_aligned(job.in[k]);
  }
  job.packed = job.packed && (out.dtype() == shared || out.dtype() == kBool);
  out.bump_version();
  if (job.n == 0) return job;
  const LoopPlan plan = plan_loop(out.shape(), {operands, inputs.size() + 1});
  job.rank = plan.rank;
  for (int axis = 0; axis < plan.rank; ++axis) {
    job.size[axis] = plan.size[axis];
    for (int k = 0; k <= job.inputs; ++k) job.stride[axis][k] = plan.stride[axis][k];
  }
  job.vector_rows = has_vector_rows(job);
  return job;
}

}  // namespace lockstep::kernels::cuda
