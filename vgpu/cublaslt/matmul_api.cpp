// cublasLtMatmul and its heuristics: cuBLASLt's checks, then an operation of the stream.
#include <algorithm>
#include <cstring>
#include <utility>

#include "vgpu/cublaslt/descriptors.h"
#include "vgpu/cublaslt/matmul.h"
#include "vgpu/runtime/library_operation.h"

namespace vgpu {
namespace {

constexpr std::size_t kWorkspace = 16 << 10;  // of the faster of the two algorithms
constexpr std::uint64_t kAlgorithm = 0x7667707562617300;

struct Algorithm {
  std::uint64_t kind;
  std::uint64_t workspace;
  std::uint32_t alignment[4];
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

bool is_floating(cudaDataType_t type) {
  return type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

// The combinations of types that cuBLASLt documents, as far as they are floating.
bool types_fit(const Matmul& call) {
  const cudaDataType_t in = call.a_layout.type, out = call.d_layout.type;
  if (!is_floating(in) || call.b_layout.type != in || call.c_layout.type != out) return false;
  if (call.desc.compute == CUBLAS_COMPUTE_64F)
    return in == CUDA_R_64F && out == CUDA_R_64F && call.desc.scale == CUDA_R_64F;
  if (call.desc.compute != CUBLAS_COMPUTE_32F && call.desc.compute != CUBLAS_COMPUTE_32F_PEDANTIC &&
      call.desc.compute != CUBLAS_COMPUTE_32F_FAST_TF32)
    return false;
  return in != CUDA_R_64F && (out == in || out == CUDA_R_32F) && call.desc.scale == CUDA_R_32F;
}

bool shapes_fit(const Matmul& call) {
  const auto& a = call.a_layout;
  const auto& b = call.b_layout;
  const bool at = call.desc.trans_a != CUBLAS_OP_N, bt = call.desc.trans_b != CUBLAS_OP_N;
  const std::uint64_t rows = at ? a.cols : a.rows, inner = at ? a.rows : a.cols;
  for (const auto* layout : {&a, &b, &call.c_layout, &call.d_layout})
    if (!layout->is_possible() || layout->batches != call.d_layout.batches) return false;
  return rows == call.m() && inner == (bt ? b.cols : b.rows) &&
         (bt ? b.rows : b.cols) == call.n() && call.c_layout.rows == call.m() &&
         call.c_layout.cols == call.n();
}

bool is_known_epilogue(std::uint32_t epilogue) {
  constexpr cublasLtEpilogue_t kKnown[] = {
      CUBLASLT_EPILOGUE_DEFAULT,  CUBLASLT_EPILOGUE_RELU,
      CUBLASLT_EPILOGUE_BIAS,     CUBLASLT_EPILOGUE_RELU_BIAS,
      CUBLASLT_EPILOGUE_GELU,     CUBLASLT_EPILOGUE_GELU_BIAS,
      CUBLASLT_EPILOGUE_RELU_AUX, CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
      CUBLASLT_EPILOGUE_DRELU,    CUBLASLT_EPILOGUE_DRELU_BGRAD,
      CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
      CUBLASLT_EPILOGUE_DGELU,    CUBLASLT_EPILOGUE_DGELU_BGRAD,
      CUBLASLT_EPILOGUE_BGRADA,   CUBLASLT_EPILOGUE_BGRADB};
  return std::find(std::begin(kKnown), std::end(kKnown), epilogue) != std::end(kKnown);
}

cublasStatus_t check(const Matmul& call) {
  if (!is_known_epilogue(call.desc.epilogue)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!types_fit(call)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!shapes_fit(call)) return CUBLAS_STATUS_INVALID_VALUE;
  const bool special = call.desc.epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  // Documented: epilogues want D column by column.
  if (special && call.d_layout.order != CUBLASLT_ORDER_COL) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (call.desc.uses_aux()) {
    const bool bits =
        call.desc.has(CUBLASLT_EPILOGUE_RELU) || call.desc.has(CUBLASLT_EPILOGUE_DRELU);
    // Documented: a multiple of 128 for the bits of ReLU, of 8 for GELU.
    if (call.desc.aux_ld < static_cast<std::int64_t>(call.m()) ||
        call.desc.aux_ld % (bits ? 128 : 8) != 0)
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

bool is_aligned(const void* pointer, std::uint32_t alignment) {
  return alignment == 0 || reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

cublasStatus_t check_algorithm(const Matmul& call, const cublasLtMatmulAlgo_t& given,
                               const void* workspace, std::size_t workspace_bytes,
                               std::size_t& used) {
  Algorithm algorithm;
  std::memcpy(&algorithm, &given, sizeof(algorithm));
  if (algorithm.kind != kAlgorithm) return CUBLAS_STATUS_INVALID_VALUE;
  used = algorithm.workspace;
  if (used > workspace_bytes || (used > 0 && !is_aligned(workspace, 16)))
    return CUBLAS_STATUS_INVALID_VALUE;
  const void* const pointers[] = {call.a, call.b, call.c, call.d};
  for (int i = 0; i < 4; ++i)
    if (!is_aligned(pointers[i], algorithm.alignment[i])) return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

// A dense matrix is one range; of others only the rows or columns are touched, not what is between.
template <class Note>
void note_matrix(const void* data, const cublasLtMatrixLayoutOpaque_t& layout, const Note& note) {
  const bool by_row = layout.order == CUBLASLT_ORDER_ROW;
  const std::uint64_t lines = by_row ? layout.rows : layout.cols;
  const std::uint64_t length = by_row ? layout.cols : layout.rows;
  const std::size_t element = layout.element_bytes();
  const bool dense = static_cast<std::uint64_t>(layout.ld) == length;
  for (std::int64_t batch = 0; batch < layout.batches; ++batch) {
    const auto* base = static_cast<const char*>(data) +
                       layout.offset(0, 0, batch) * static_cast<std::int64_t>(element);
    if (dense)
      note(base, lines * length * element);
    else
      for (std::uint64_t line = 0; line < lines; ++line)
        note(base + line * static_cast<std::size_t>(layout.ld) * element, length * element);
  }
}

cublasStatus_t enqueue(const Matmul& call, void* workspace, std::size_t workspace_bytes,
                       cudaStream_t stream) {
  LibraryOperation operation("cublasLtMatmul");
  const auto reads = [&](const void* p, std::size_t bytes) { operation.reads(p, bytes); };
  const auto writes = [&](const void* p, std::size_t bytes) {
    operation.writes(const_cast<void*>(p), bytes);
  };
  note_matrix(call.a, call.a_layout, reads);
  note_matrix(call.b, call.b_layout, reads);
  if (call.beta != 0 || call.device_beta != nullptr) note_matrix(call.c, call.c_layout, reads);
  note_matrix(call.d, call.d_layout, writes);
  const std::size_t scalar = call.desc.scale == CUDA_R_64F ? 8 : 4;
  if (call.device_alpha != nullptr) operation.reads(call.device_alpha, scalar);
  if (call.device_beta != nullptr) operation.reads(call.device_beta, scalar);
  const std::size_t bias_bytes =
      (static_cast<std::size_t>((call.d_layout.batches - 1) * call.desc.bias_batch_stride) +
       call.bias_length()) *
      bytes_of(bias_type(call));
  if (call.desc.adds_bias()) operation.reads(call.desc.bias, bias_bytes);
  if (call.desc.sums_bias_gradient()) operation.writes(call.desc.bias, bias_bytes);
  if (call.desc.uses_aux()) {
    if (call.desc.reads_aux())
      operation.reads(call.desc.aux, call.aux_bytes());
    else
      operation.writes(call.desc.aux, call.aux_bytes());
  }
  operation.uses_workspace(workspace, workspace_bytes);
  const cudaError_t error = operation.enqueue(stream, [call] { multiply(call); });
  return error == cudaSuccess             ? CUBLAS_STATUS_SUCCESS
         : error == cudaErrorInvalidValue ? CUBLAS_STATUS_INVALID_VALUE
                                          : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace
}  // namespace vgpu

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (desc == nullptr || a == nullptr || b == nullptr || c == nullptr || d == nullptr ||
      preference == nullptr || results == nullptr || found == nullptr || requested < 1)
    return CUBLAS_STATUS_INVALID_VALUE;
  *found = 0;
  vgpu::Matmul call{};
  call.desc = *desc;
  call.a_layout = *a;
  call.b_layout = *b;
  call.c_layout = *c;
  call.d_layout = *d;
  if (const cublasStatus_t status = vgpu::check(call); status != CUBLAS_STATUS_SUCCESS)
    return status;
  for (const std::size_t workspace : {vgpu::kWorkspace, std::size_t{0}}) {
    if (workspace > preference->workspace || *found == requested) continue;
    vgpu::Algorithm algorithm{vgpu::kAlgorithm, workspace, {}};
    std::copy_n(preference->alignment, 4, algorithm.alignment);
    cublasLtMatmulHeuristicResult_t result{};
    std::memcpy(&result.algo, &algorithm, sizeof(algorithm));
    result.workspaceSize = workspace;
    result.wavesCount = 1;
    results[(*found)++] = result;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (desc == nullptr || alpha == nullptr || beta == nullptr || a_layout == nullptr ||
      b_layout == nullptr || c_layout == nullptr || d_layout == nullptr)
    return CUBLAS_STATUS_INVALID_VALUE;
  vgpu::Matmul call{};
  call.desc = *desc;
  call.a_layout = *a_layout;
  call.b_layout = *b_layout;
  call.c_layout = *c_layout;
  call.d_layout = *d_layout;
  call.a = a;
  call.b = b;
  call.c = c;
  call.d = d;
  if (const cublasStatus_t status = vgpu::check(call); status != CUBLAS_STATUS_SUCCESS)
    return status;
  if (call.m() == 0 || call.n() == 0) return CUBLAS_STATUS_SUCCESS;
  if (desc->pointer_mode == CUBLASLT_POINTER_MODE_DEVICE) {
    call.device_alpha = alpha;
    call.device_beta = beta;
  } else if (desc->scale == CUDA_R_64F) {
    call.alpha = *static_cast<const double*>(alpha);
    call.beta = *static_cast<const double*>(beta);
  } else {
    call.alpha = *static_cast<const float*>(alpha);
    call.beta = *static_cast<const float*>(beta);
  }
  const bool needs_bias = desc->adds_bias() || desc->sums_bias_gradient();
  if ((needs_bias && desc->bias == nullptr) || (desc->uses_aux() && desc->aux == nullptr))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::size_t used = 0;
  if (algo != nullptr)
    if (const cublasStatus_t status =
            vgpu::check_algorithm(call, *algo, workspace, workspace_bytes, used);
        status != CUBLAS_STATUS_SUCCESS)
      return status;
  return vgpu::enqueue(call, workspace, used, stream);
}
