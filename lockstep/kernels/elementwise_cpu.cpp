#include <algorithm>
#include <cstddef>

#include "lockstep/core/check.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/convert.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/elementwise.h"
#include "lockstep/kernels/loop_plan.h"

namespace lockstep::kernels {
namespace {

constexpr std::int64_t kBufferBytes = 4096;
constexpr std::int64_t kChunk = 32768;  // elements that are worth a thread
constexpr int kMaxInputs = kMaxOperands - 1;

// A number, converted once to the compute type.
union Value {
  float f32;
  double f64;
  std::int64_t i64;
};

Value to_value(const Scalar& s, DType compute) {
  Value v;
  if (compute == kI64)
    v.i64 = s.is_integer() ? s.integer() : static_cast<std::int64_t>(s.real());
  else if (compute == kF64)
    v.f64 = s.real();
  else
    v.f32 = static_cast<float>(s.real());
  return v;
}

struct Input {
  const char* data;
  std::int64_t itemsize;
  DType dtype;
  Value number;  // if data is null
};

struct Job {
  const PointwiseCall* call;
  LoopPlan plan;
  Input in[kMaxInputs];
  int inputs;
  char* out;
  std::int64_t out_itemsize;
  DType out_dtype;
};

DType native_result(const PointwiseCall& call) { return call.gives_bool ? kBool : call.compute; }

// `n` elements of one run, at `begin` within it.
void run_piece(const Job& job, const RowCursor& row, std::int64_t begin, std::int64_t n) {
  const PointwiseCall& call = *job.call;
  const LoopPlan& plan = job.plan;
  const auto compute_size = static_cast<std::int64_t>(dtype_size(call.compute));
  alignas(64) std::byte buffers[kMaxOperands][kBufferBytes];
  Value scalars[kMaxInputs];
  const void* in[kMaxInputs];
  ConvertRun load[kMaxInputs] = {};
  unsigned scalar_mask = 0;
  bool buffered = false;
  for (int k = 0; k < job.inputs; ++k) {
    const Input& x = job.in[k];
    const std::int64_t stride = plan.stride[0][k + 1];
    if (!x.data) {
      in[k] = &x.number;
      scalar_mask |= 1u << k;
      continue;
    }
    const char* at = x.data + (row.offset(k + 1) + begin * stride) * x.itemsize;
    if (stride == 0) {
      convert_run(x.dtype, call.compute)(at, 1, &scalars[k], 1, 1);
      in[k] = &scalars[k];
      scalar_mask |= 1u << k;
    } else if (stride == 1 && x.dtype == call.compute) {
      in[k] = at;
    } else {
      load[k] = convert_run(x.dtype, call.compute);
      in[k] = at;
      buffered = true;
    }
  }
  const std::int64_t out_stride = plan.stride[0][0];
  char* out = job.out + (row.offset(0) + begin * out_stride) * job.out_itemsize;
  ConvertRun store = nullptr;
  if (n > 1 && out_stride != 1) store = convert_run(native_result(call), job.out_dtype);
  if (job.out_dtype != native_result(call)) store = convert_run(native_result(call), job.out_dtype);
  if (!buffered && !store) return call.loop({call.functor, out, in, scalar_mask, n});

  const std::int64_t block = kBufferBytes / compute_size;
  for (std::int64_t done = 0; done < n; done += block) {
    const std::int64_t count = std::min(block, n - done);
    const void* block_in[kMaxInputs];
    for (int k = 0; k < job.inputs; ++k) {
      if (scalar_mask >> k & 1) {
        block_in[k] = in[k];
      } else if (load[k]) {
        const std::int64_t stride = plan.stride[0][k + 1];
        load[k](static_cast<const char*>(in[k]) + done * stride * job.in[k].itemsize, stride,
                buffers[k], 1, count);
        block_in[k] = buffers[k];
      } else {
        block_in[k] = static_cast<const char*>(in[k]) + done * compute_size;
      }
    }
    char* block_out = out + done * out_stride * job.out_itemsize;
    void* result = store ? static_cast<void*>(buffers[kMaxInputs]) : block_out;
    call.loop({call.functor, result, block_in, scalar_mask, count});
    if (store) store(result, 1, block_out, out_stride, count);
  }
}

void run_job(const Job& job) {
  const std::int64_t run = job.plan.run(), rows = job.plan.rows();
  if (run == 0 || rows == 0) return;
  if (rows == 1) {
    const RowCursor row(job.plan, 0);
    if (run <= kChunk) return run_piece(job, row, 0, run);
    // Pieces begin at multiples of kChunk, whatever the number of threads.
    parallel_for((run + kChunk - 1) / kChunk, 1, [&](std::int64_t first, std::int64_t last) {
      const std::int64_t begin = first * kChunk;
      run_piece(job, row, begin, std::min(last * kChunk, run) - begin);
    });
    return;
  }
  const auto some_rows = [&](std::int64_t first, std::int64_t last) {
    RowCursor row(job.plan, first);
    for (std::int64_t r = first; r < last; ++r, row.next()) run_piece(job, row, 0, run);
  };
  if (rows * run <= kChunk) return some_rows(0, rows);
  parallel_for(rows, std::max<std::int64_t>(kChunk / run, 1), some_rows);
}

bool same_elements(const Tensor& a, const Tensor& b) {
  return a.data() == b.data() && a.strides() == b.strides() && a.shape() == b.shape() &&
         a.dtype() == b.dtype();
}

// Both are one run of memory in the same order.
bool one_run(const Tensor& out, const Tensor& x) {
  return x.shape() == out.shape() && x.strides() == out.strides();
}

MemoryFormat shape_layout(const Shape& shape, std::span<const Operand> inputs) {
  for (const Operand& x : inputs)
    if (x.is_tensor() && x.tensor().shape() == shape) return layout_of(x.tensor());
  return MemoryFormat::kContiguous;
}

}  // namespace

void run_pointwise(const PointwiseCall& call, const Tensor& out, std::span<const Operand> inputs) {
  for (const Operand& x : inputs)
    if (x.is_tensor()) common_device(call.name, {&out, &x.tensor()});
  Job job;
  job.call = &call;
  job.inputs = static_cast<int>(inputs.size());
  job.out = static_cast<char*>(out.data());
  job.out_itemsize = static_cast<std::int64_t>(out.itemsize());
  job.out_dtype = out.dtype();
  PlanOperand operands[kMaxOperands] = {{&out.shape(), &out.strides()}};
  Tensor copies[kMaxInputs];
  const Shape number_shape;
  bool alike = out.is_contiguous();
  for (int k = 0; k < job.inputs; ++k) {
    const Operand& x = inputs[k];
    if (!x.is_tensor()) {
      job.in[k] = {nullptr, 0, call.compute, to_value(x.scalar(), call.compute)};
      operands[k + 1] = {&number_shape, &number_shape};
      continue;
    }
    const Tensor* t = &x.tensor();
    if (t->shares_storage_with(out) && !same_elements(*t, out)) {
      copies[k] = t->clone();
      t = &copies[k];
    }
    job.in[k] = {static_cast<const char*>(t->data()),
                 static_cast<std::int64_t>(t->itemsize()),
                 t->dtype(),
                 {}};
    operands[k + 1] = {&t->shape(), &t->strides()};
    alike = alike && one_run(out, *t);
  }
  out.bump_version();
  if (alike) {
    job.plan.rank = 1;
    job.plan.operands = job.inputs + 1;
    job.plan.size[0] = out.numel();
    for (int k = 0; k <= job.inputs; ++k)
      job.plan.stride[0][k] = k > 0 && !job.in[k - 1].data ? 0 : 1;
    if (job.plan.size[0] == 0) return;
  } else {
    if (out.numel() == 0) return;
    job.plan = plan_loop(out.shape(), {operands, static_cast<std::size_t>(job.inputs + 1)});
  }
  run_job(job);
}

Tensor make_output(const char* name, DType dtype, std::span<const Operand> inputs) {
  const Tensor* first = nullptr;
  bool one_shape = true;
  for (const Operand& x : inputs) {
    if (!x.is_tensor()) continue;
    if (!first)
      first = &x.tensor();
    else
      one_shape = one_shape && x.tensor().shape() == first->shape();
  }
  LOCKSTEP_CHECK(first, "{}: at least one input must be a tensor", name);
  if (one_shape && first->is_dense()) return empty_like(*first, dtype);
  Shape shape = first->shape();
  for (const Operand& x : inputs)
    if (x.is_tensor()) shape = broadcast_shapes(shape, x.tensor().shape(), name);
  for (const Operand& x : inputs)
    if (x.is_tensor() && x.tensor().shape() == shape && x.tensor().is_dense())
      return empty_like(x.tensor(), dtype);
  return empty(shape, {dtype, first->device(), shape_layout(shape, inputs)});
}

}  // namespace lockstep::kernels
