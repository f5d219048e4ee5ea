// Products by cuBLASLt. It thinks in columns: our C by rows is its C^T = B^T A^T.
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "lockstep/core/check.h"
#include "lockstep/core/current_stream.h"
#include "lockstep/core/device_guard.h"
#include "lockstep/kernels/gemm_cuda.h"
#include "lockstep/kernels/library_handle.h"

namespace lockstep::kernels::cuda {
namespace {

void check(cublasStatus_t status, const char* call) {
  LOCKSTEP_CHECK(status == CUBLAS_STATUS_SUCCESS, "gemm: {} said {}", call,
                 cublasLtGetStatusName(status));
}

using Layout = LibraryHandle<cublasLtMatrixLayoutDestroy, cublasLtMatrixLayout_t>;
using Product = LibraryHandle<cublasLtMatmulDescDestroy, cublasLtMatmulDesc_t>;
using Preference = LibraryHandle<cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreference_t>;

// A matrix as BLAS takes it: columns (or, transposed, rows) of ours with a leading dimension.
struct BlasMatrix {
  bool transposed = false;
  std::int64_t rows = 0, columns = 0;  // ours
  std::int64_t leading = 0, batch_stride = 0;
  std::int64_t alignment = 0;  // bytes

  // False where neither rows nor columns lie side by side.
  bool set(const Tensor& t) {
    const int first = t.dim() - 2;
    rows = t.size(first);
    columns = t.size(first + 1);
    batch_stride = first > 0 ? t.strides()[0] : 0;
    const auto address = reinterpret_cast<std::uintptr_t>(t.data());
    alignment = static_cast<std::int64_t>(std::min<std::uintptr_t>(address & -address, 256));
    const std::int64_t row = t.strides()[first], column = t.strides()[first + 1];
    if (columns == 1 || column == 1) {
      transposed = false;
      leading = rows == 1 ? columns : row;
      return leading >= columns;
    }
    transposed = true;
    leading = columns == 1 ? rows : column;
    return (rows == 1 || row == 1) && leading >= rows;
  }

  // In memory it is, by columns, (leading's side) x (the other).
  Layout layout(cudaDataType type, std::int64_t batches) const {
    cublasLtMatrixLayout_t out = nullptr;
    const std::int64_t inner = transposed ? rows : columns, outer = transposed ? columns : rows;
    check(cublasLtMatrixLayoutCreate(&out, type, static_cast<std::uint64_t>(inner),
                                     static_cast<std::uint64_t>(outer), leading),
          "cublasLtMatrixLayoutCreate");
    Layout owned(out);
    const auto count = static_cast<std::int32_t>(batches);
    check(cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                           sizeof count),
          "the batch count");
    check(cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                           &batch_stride, sizeof batch_stride),
          "the batch stride");
    return owned;
  }

  std::array<std::int64_t, 6> key() const {
    return {transposed, rows, columns, leading, batch_stride, alignment};
  }
};

cudaDataType type_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return CUDA_R_64F;
    case DType::kF16:
      return CUDA_R_16F;
    case DType::kBF16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

// cuBLASLt on one device, and the algorithms it has chosen so far: a choice takes longer than a
// small product.
struct Library {
  using Key = std::array<std::int64_t, 22>;
  cublasLtHandle_t handle = nullptr;
  std::mutex mutex;
  std::map<Key, cublasLtMatmulHeuristicResult_t> chosen;

  Library() { check(cublasLtCreate(&handle), "cublasLtCreate"); }
};

Library& library_of(Device device) {
  static std::mutex mutex;
  static auto& all = *new std::map<int, std::unique_ptr<Library>>;  // as long as the process
  const std::lock_guard lock(mutex);
  std::unique_ptr<Library>& library = all[device.index];
  if (!library) library = std::make_unique<Library>();
  return *library;
}

Product product_of(const GemmCall& call, const BlasMatrix& a, const BlasMatrix& b) {
  const bool f64 = call.c.dtype() == kF64;
  cublasLtMatmulDesc_t out = nullptr;
  check(cublasLtMatmulDescCreate(&out, f64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                 f64 ? CUDA_R_64F : CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  Product owned(out);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulDescSetAttribute(out, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  };
  const cublasOperation_t of_a = a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t of_b = b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(CUBLASLT_MATMUL_DESC_TRANSA, of_b);
  set(CUBLASLT_MATMUL_DESC_TRANSB, of_a);
  const cublasLtEpilogue_t epilogue =
      call.bias.defined() ? (call.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS)
                          : (call.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (call.bias.defined()) {
    const void* const bias = call.bias.data();
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
  return owned;
}

Preference preference_of(const BlasMatrix& a, const BlasMatrix& b, const BlasMatrix& c) {
  cublasLtMatmulPreference_t out = nullptr;
  check(cublasLtMatmulPreferenceCreate(&out), "cublasLtMatmulPreferenceCreate");
  Preference owned(out);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulPreferenceSetAttribute(out, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  constexpr std::uint64_t kWorkspace = std::uint64_t{32} << 20;  // what NVIDIA advises for sm_90
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(b.alignment));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(a.alignment));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(c.alignment));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(c.alignment));
  return owned;
}

Library::Key key_of(const GemmCall& call, const BlasMatrix& a, const BlasMatrix& b,
                    const BlasMatrix& c, std::int64_t batches) {
  Library::Key key{};
  auto at = key.begin();
  for (const BlasMatrix* m : {&a, &b, &c}) at = std::ranges::copy(m->key(), at).out;
  *at++ = static_cast<std::int64_t>(call.c.dtype());
  *at++ = batches;
  *at++ = (call.accumulate ? 4 : 0) + (call.bias.defined() ? 2 : 0) + (call.relu ? 1 : 0);
  *at = 0;
  return key;
}

}  // namespace

bool gemm_library(const GemmCall& call) {
  BlasMatrix a, b, c;
  if (!a.set(call.a) || !b.set(call.b) || !c.set(call.c) || c.transposed) return false;
  const DeviceGuard guard(call.c.device());
  const std::int64_t batches = call.c.dim() == 3 ? call.c.size(0) : 1;
  const cudaDataType type = type_of(call.c.dtype());
  const Product product = product_of(call, a, b);
  const Layout of_a = a.layout(type, batches), of_b = b.layout(type, batches),
               of_c = c.layout(type, batches);
  Library& library = library_of(call.c.device());
  const Library::Key key = key_of(call, a, b, c, batches);
  cublasLtMatmulHeuristicResult_t choice;
  {
    const std::lock_guard lock(library.mutex);
    const auto known = library.chosen.find(key);
    if (known != library.chosen.end()) {
      choice = known->second;
    } else {
      int found = 0;
      const Preference preference = preference_of(a, b, c);
      if (cublasLtMatmulAlgoGetHeuristic(library.handle, product.get(), of_b.get(), of_a.get(),
                                         of_c.get(), of_c.get(), preference.get(), 1, &choice,
                                         &found) != CUBLAS_STATUS_SUCCESS ||
          found == 0)
        return false;
      library.chosen[key] = choice;
    }
  }
  const Tensor workspace =
      empty({static_cast<std::int64_t>(choice.workspaceSize)}, {kU8, call.c.device()});
  const bool f64 = call.c.dtype() == kF64;
  const double one = 1, beta = call.accumulate ? 1 : 0;
  const float one_f32 = 1, beta_f32 = call.accumulate ? 1 : 0;
  check(
      cublasLtMatmul(library.handle, product.get(), f64 ? static_cast<const void*>(&one) : &one_f32,
                     call.b.data(), of_b.get(), call.a.data(), of_a.get(),
                     f64 ? static_cast<const void*>(&beta) : &beta_f32, call.c.data(), of_c.get(),
                     call.c.data(), of_c.get(), &choice.algo, workspace.data(),
                     choice.workspaceSize, current_native_stream(call.c.device())),
      "cublasLtMatmul");
  return true;
}

}  // namespace lockstep::kernels::cuda
