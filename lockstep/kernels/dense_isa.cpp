// Chooses among the copies of the dense kernels' loops.
#include "lockstep/kernels/batch_norm_pool_simd.h"
#include "lockstep/kernels/batch_norm_simd.h"
#include "lockstep/kernels/gemm_simd.h"
#include "lockstep/kernels/isa.h"
#include "lockstep/kernels/max_pool2d_simd.h"

namespace lockstep::kernels {

namespace kBaseline {
extern const GemmKernels kGemmKernels;
extern const BatchNormKernels kBatchNormKernels;
extern const MaxPoolKernels kMaxPoolKernels;
extern const BatchNormPoolKernels kBatchNormPoolKernels;
}  // namespace kBaseline
#if defined(__x86_64__)
namespace kAvx2 {
extern const GemmKernels kGemmKernels;
extern const BatchNormKernels kBatchNormKernels;
extern const MaxPoolKernels kMaxPoolKernels;
extern const BatchNormPoolKernels kBatchNormPoolKernels;
}  // namespace kAvx2
namespace kAvx512 {
extern const GemmKernels kGemmKernels;
extern const BatchNormKernels kBatchNormKernels;
extern const MaxPoolKernels kMaxPoolKernels;
extern const BatchNormPoolKernels kBatchNormPoolKernels;
}  // namespace kAvx512
#define LOCKSTEP_CHOOSE(table) \
  switch (best_isa()) {        \
    case Isa::kAvx512:         \
      return kAvx512::table;   \
    case Isa::kAvx2:           \
      return kAvx2::table;     \
    default:                   \
      return kBaseline::table; \
  }
#else
#define LOCKSTEP_CHOOSE(table) return kBaseline::table;
#endif

const GemmKernels& gemm_kernels() { LOCKSTEP_CHOOSE(kGemmKernels) }
const BatchNormKernels& batch_norm_kernels() { LOCKSTEP_CHOOSE(kBatchNormKernels) }
const BatchNormPoolKernels& batch_norm_pool_kernels() { LOCKSTEP_CHOOSE(kBatchNormPoolKernels) }
const MaxPoolKernels& max_pool_kernels() { LOCKSTEP_CHOOSE(kMaxPoolKernels) }

}  // namespace lockstep::kernels
