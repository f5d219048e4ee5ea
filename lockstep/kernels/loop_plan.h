// The order in which an element-wise loop walks several tensors of one broadcast shape: axes sorted
// by the output's strides and merged where every tensor allows it, so that the innermost run is as
// long as can be. Internal.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

inline constexpr int kMaxOperands = 4;  // the output and up to three inputs

struct LoopPlan {
  int rank = 0;  // axis 0 is the innermost; at least 1
  int operands = 0;
  std::int64_t size[kMaxRank];
  std::int64_t stride[kMaxRank][kMaxOperands];  // in elements; 0 where an operand is broadcast

  std::int64_t run() const { return size[0]; }
  std::int64_t rows() const;  // runs
};

// One operand of the loop: shape and strides are right-aligned to `shape`, size-1 axes broadcast.
struct PlanOperand {
  const Shape* shape;
  const Strides* strides;
};

// operands[0] is the output, of exactly this shape. For numel() 0 the plan has run() 0 or rows() 0.
LoopPlan plan_loop(const Shape& shape, std::span<const PlanOperand> operands);

// The layout of a new tensor shaped like x: channels-last also where x is a part of such a tensor
// and so not dense.
MemoryFormat layout_of(const Tensor& x);

// Walks the runs of a plan from any row on, keeping each operand's offset (in elements).
class RowCursor {
 public:
  RowCursor(const LoopPlan& plan, std::int64_t row);
  void next();
  std::int64_t offset(int operand) const { return offset_[operand]; }

 private:
  const LoopPlan& plan_;
  std::int64_t index_[kMaxRank] = {};
  std::int64_t offset_[kMaxOperands] = {};
};

}  // namespace lockstep::kernels
