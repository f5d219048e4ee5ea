// Which dtype two operands meet in: PyTorch's rules.
#pragma once

#include "lockstep/kernels/operand.h"

namespace lockstep::kernels {

// bool < u8 < i32 < i64 < f16, bf16 < f32 < f64; f16 with bf16 gives f32. A floating dtype wins
// over any integer.
DType promote(DType a, DType b);

// The same for operands: a tensor without dimensions and a number change the dtype of a tensor with
// dimensions only if they are of a higher category (bool, integer, floating). A floating number is
// f32, an integer i64 where nothing else decides.
DType result_dtype(const Operand& a, const Operand& b);

// Integers and bool become f32; floating dtypes stay.
DType floating_or_f32(DType dtype);

// What an element-wise op computes in: f32 for f32 and the half types, f64, i64 for all integers.
DType compute_dtype(DType dtype);

}  // namespace lockstep::kernels
