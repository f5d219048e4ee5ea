// cuBLASLt on the virtual GPU: products against plain loops, epilogues, and the checks of calls.
#include <cublasLt.h>

#include <cmath>
#include <cstring>
#include <random>

#include "vgpu/device_buffer.cuh"
#include "vgpu/runtime/half_bits.h"

namespace vgpu_tests {
namespace {

#define EXPECT_CUBLAS(call) EXPECT_EQ(call, CUBLAS_STATUS_SUCCESS)

class RuntimeCublasLt : public VirtualGpu {
 protected:
  void SetUp() override {
    VirtualGpu::SetUp();
    EXPECT_CUBLAS(cublasLtCreate(&handle_));
    make(CUDA_R_32F);
  }
  void TearDown() override {
    clear();
    EXPECT_CUBLAS(cublasLtDestroy(handle_));
    cudaGetLastError();
    VirtualGpu::TearDown();
  }
  void clear() {
    cublasLtMatrixLayoutDestroy(a_);
    cublasLtMatrixLayoutDestroy(b_);
    cublasLtMatrixLayoutDestroy(d_);
    cublasLtMatmulDescDestroy(desc_);
  }
  // A is kM x kK, B is kK x kN, turned where the flag says so.
  void make(cudaDataType type, bool turn_a = false, bool turn_b = false) {
    if (desc_ != nullptr) clear();
    EXPECT_CUBLAS(cublasLtMatmulDescCreate(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    EXPECT_CUBLAS(cublasLtMatrixLayoutCreate(&a_, type, turn_a ? kK : kM, turn_a ? kM : kK,
                                             turn_a ? kK : kM));
    EXPECT_CUBLAS(cublasLtMatrixLayoutCreate(&b_, type, turn_b ? kN : kK, turn_b ? kK : kN,
                                             turn_b ? kN : kK));
    EXPECT_CUBLAS(cublasLtMatrixLayoutCreate(&d_, type, kM, kN, kM));
    const std::int32_t ta = turn_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                       tb = turn_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    EXPECT_CUBLAS(
        cublasLtMatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof(ta)));
    EXPECT_CUBLAS(
        cublasLtMatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof(tb)));
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    EXPECT_CUBLAS(cublasLtMatmulDescSetAttribute(desc_, attribute, &value, sizeof(value)));
  }
  void epilogue(cublasLtEpilogue_t value) { set(CUBLASLT_MATMUL_DESC_EPILOGUE, value); }
  cublasStatus_t multiply(const void* a, const void* b, void* d, float alpha = 1, float beta = 0,
                          cudaStream_t stream = nullptr) {
    return cublasLtMatmul(handle_, desc_, &alpha, a, a_, b, b_, &beta, d, d_, d, d_, nullptr,
                          nullptr, 0, stream);
  }
  static std::vector<float> random(std::size_t n, unsigned seed) {
    std::mt19937 generator(seed);
    std::vector<float> values(n);
    // Eighths: exact in the half types, and so are their products in f32.
    for (float& x : values) x = static_cast<float>(static_cast<int>(generator() % 33) - 16) / 8;
    return values;
  }
  // Column by column.
  static std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b,
                                    bool turn_a = false, bool turn_b = false) {
    std::vector<float> d(kM * kN);
    for (std::size_t i = 0; i < kM; ++i)
      for (std::size_t j = 0; j < kN; ++j)
        for (std::size_t l = 0; l < kK; ++l)
          d[j * kM + i] +=
              a[turn_a ? i * kK + l : l * kM + i] * b[turn_b ? l * kN + j : j * kK + l];
    return d;
  }

  static constexpr std::size_t kM = 5, kN = 7, kK = 9;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
};

TEST_F(RuntimeCublasLt, AllTranspositions) {
  const auto a = random(kM * kK, 1), b = random(kK * kN, 2);
  Buffer<float> x(a), y(b), z(kM * kN);
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      make(CUDA_R_32F, ta, tb);
      EXPECT_CUBLAS(multiply(x.data(), y.data(), z.data()));
      EXPECT_EQ(fault(), "");
      EXPECT_EQ(z.host(), product(a, b, ta, tb)) << ta << tb;
    }
  // And on top of what is there.
  auto expected = z.host();
  for (float& v : expected) v = 2 * v + 3 * v;
  EXPECT_CUBLAS(multiply(x.data(), y.data(), z.data(), 2, 3));
  EXPECT_EQ(z.host(), expected);
}

template <class T>
std::vector<std::uint16_t> narrow(const std::vector<float>& values) {
  std::vector<std::uint16_t> bits;
  for (const float x : values) bits.push_back(vgpu::Narrow<T>::from(x).bits);
  return bits;
}

TEST_F(RuntimeCublasLt, HalfTypes) {
  const auto a = random(kM * kK, 1), b = random(kK * kN, 2);
  const auto d = product(a, b);
  Buffer<std::uint16_t> ah(narrow<vgpu::Half>(a)), bh(narrow<vgpu::Half>(b)), dh(kM * kN);
  make(CUDA_R_16F);
  EXPECT_CUBLAS(multiply(ah.data(), bh.data(), dh.data()));
  EXPECT_EQ(dh.host(), narrow<vgpu::Half>(d));
  Buffer<std::uint16_t> ab(narrow<vgpu::Bfloat16>(a)), bb(narrow<vgpu::Bfloat16>(b)), db(kM * kN);
  make(CUDA_R_16BF);
  EXPECT_CUBLAS(multiply(ab.data(), bb.data(), db.data()));
  EXPECT_EQ(db.host(), narrow<vgpu::Bfloat16>(d));
}

TEST_F(RuntimeCublasLt, BiasAndActivations) {
  const auto a = random(kM * kK, 1), b = random(kK * kN, 2), bias = random(kM, 3);
  Buffer<float> x(a), y(b), z(kM * kN), c(bias);
  Buffer<unsigned char> mask(128 / 8 * kN);
  EXPECT_CUDA(cudaMemset(mask.data(), 0, 128 / 8 * kN));
  auto sum = product(a, b);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += bias[i % kM];
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(c.data()));
  epilogue(CUBLASLT_EPILOGUE_BIAS);
  EXPECT_CUBLAS(multiply(x.data(), y.data(), z.data()));
  EXPECT_EQ(z.host(), sum);

  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(mask.data()));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{128});
  epilogue(CUBLASLT_EPILOGUE_RELU_AUX_BIAS);
  EXPECT_CUBLAS(multiply(x.data(), y.data(), z.data()));
  auto relu = sum;
  for (float& v : relu) v = std::max(v, 0.0f);
  EXPECT_EQ(z.host(), relu);

  // Backward through the same mask; the gradient of the bias is the sum over columns.
  epilogue(CUBLASLT_EPILOGUE_DRELU_BGRAD);
  EXPECT_CUBLAS(multiply(x.data(), y.data(), z.data()));
  auto dx = product(a, b);
  std::vector<float> dbias(kM);
  for (std::size_t i = 0; i < dx.size(); ++i) {
    if (sum[i] <= 0) dx[i] = 0;
    dbias[i % kM] += dx[i];
  }
  EXPECT_EQ(z.host(), dx);
  EXPECT_EQ(c.host(), dbias);
  EXPECT_EQ(fault(), "");
}

TEST_F(RuntimeCublasLt, GeluAndItsDerivative) {
  const auto a = random(kM * kK, 1), b = random(kK * kN, 2);
  Buffer<float> x(a), y(b), z(kM * kN), aux(8 * kN);
  const auto sum = product(a, b);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(aux.data()));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{8});
  epilogue(CUBLASLT_EPILOGUE_GELU_AUX);
  EXPECT_CUBLAS(multiply(x.data(), y.data(), z.data()));
  const auto gelu = [](double v) {
    return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  };
  const auto forward = z.host();
  for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(forward[i], gelu(sum[i]), 1e-5);
  epilogue(CUBLASLT_EPILOGUE_DGELU);
  EXPECT_CUBLAS(multiply(x.data(), y.data(), z.data()));
  const auto backward = z.host();
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const double slope = (gelu(sum[i] + 1e-4) - gelu(sum[i] - 1e-4)) / 2e-4;
    EXPECT_NEAR(backward[i], sum[i] * slope, 1e-3);
  }
}

TEST_F(RuntimeCublasLt, GradientsOfTheBiasBesideTheProduct) {
  const auto a = random(kM * kK, 1), b = random(kK * kN, 2);
  Buffer<float> x(a), y(b), z(kM * kN), da(kM), db(kN);
  std::vector<float> rows(kM), cols(kN);
  for (std::size_t l = 0; l < kK; ++l) {
    for (std::size_t i = 0; i < kM; ++i) rows[i] += a[l * kM + i];
    for (std::size_t j = 0; j < kN; ++j) cols[j] += b[j * kK + l];
  }
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(da.data()));
  epilogue(CUBLASLT_EPILOGUE_BGRADA);
  EXPECT_CUBLAS(multiply(x.data(), y.data(), z.data()));
  EXPECT_EQ(da.host(), rows);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(db.data()));
  epilogue(CUBLASLT_EPILOGUE_BGRADB);
  EXPECT_CUBLAS(multiply(x.data(), y.data(), z.data()));
  EXPECT_EQ(db.host(), cols);
}

TEST_F(RuntimeCublasLt, RowsAndBatches) {
  const auto a = random(2 * kM * kK, 1), b = random(2 * kK * kN, 2);
  Buffer<float> x(a), y(b), z(2 * kM * kN);
  clear();
  EXPECT_CUBLAS(cublasLtMatmulDescCreate(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const auto layout = [](cublasLtMatrixLayout_t& l, std::size_t rows, std::size_t cols) {
    EXPECT_CUBLAS(
        cublasLtMatrixLayoutCreate(&l, CUDA_R_32F, rows, cols, static_cast<std::int64_t>(cols)));
    const std::int32_t order = CUBLASLT_ORDER_ROW, batches = 2;
    const auto stride = static_cast<std::int64_t>(rows * cols);
    EXPECT_CUBLAS(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, 4));
    EXPECT_CUBLAS(
        cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, 4));
    EXPECT_CUBLAS(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                   &stride, 8));
  };
  layout(a_, kM, kK);
  layout(b_, kK, kN);
  layout(d_, kM, kN);
  EXPECT_CUBLAS(multiply(x.data(), y.data(), z.data()));
  std::vector<float> expected(2 * kM * kN);
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t i = 0; i < kM; ++i)
      for (std::size_t j = 0; j < kN; ++j)
        for (std::size_t l = 0; l < kK; ++l)
          expected[(s * kM + i) * kN + j] += a[(s * kM + i) * kK + l] * b[(s * kK + l) * kN + j];
  EXPECT_EQ(z.host(), expected);
}

TEST_F(RuntimeCublasLt, HeuristicsAndTheirWorkspace) {
  Buffer<float> x(random(kM * kK, 1)), y(random(kK * kN, 2)), z(kM * kN);
  cublasLtMatmulPreference_t preference = nullptr;
  EXPECT_CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
  const std::uint64_t most = 1 << 20;
  EXPECT_CUBLAS(cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof(most)));
  cublasLtMatmulHeuristicResult_t results[4];
  int found = 0;
  EXPECT_CUBLAS(cublasLtMatmulAlgoGetHeuristic(handle_, desc_, a_, b_, d_, d_, preference, 4,
                                               results, &found));
  ASSERT_EQ(found, 2);
  ASSERT_GT(results[0].workspaceSize, 0u);
  EXPECT_EQ(results[1].workspaceSize, 0u);
  Buffer<char> workspace(results[0].workspaceSize);
  const float one = 1, zero = 0;
  const auto run = [&](const float* a, std::size_t bytes) {
    return cublasLtMatmul(handle_, desc_, &one, a, a_, y.data(), b_, &zero, z.data(), d_, z.data(),
                          d_, &results[0].algo, workspace.data(), bytes, nullptr);
  };
  EXPECT_EQ(run(x.data(), results[0].workspaceSize - 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(run(x.data() + 1, results[0].workspaceSize), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_CUBLAS(run(x.data(), results[0].workspaceSize));
  EXPECT_EQ(workspace.host()[0], '\xff');
  EXPECT_CUBLAS(cublasLtMatmulPreferenceDestroy(preference));
}

TEST_F(RuntimeCublasLt, WrongCallsAreErrors) {
  Buffer<float> x(random(kM * kK, 1)), y(random(kK * kN, 2)), z(kM * kN);
  std::vector<float> host(kM * kK);
  EXPECT_EQ(multiply(host.data(), y.data(), z.data()), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply(x.data() + 1, y.data(), z.data()), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply(y.data(), x.data(), z.data()), CUBLAS_STATUS_INVALID_VALUE);
  std::swap(a_, b_);
  EXPECT_EQ(multiply(x.data(), y.data(), z.data()), CUBLAS_STATUS_INVALID_VALUE);
  std::swap(a_, b_);
  epilogue(CUBLASLT_EPILOGUE_BIAS);
  EXPECT_EQ(multiply(x.data(), y.data(), z.data()), CUBLAS_STATUS_INVALID_VALUE);
  epilogue(CUBLASLT_EPILOGUE_DEFAULT);
  const cudaDataType half = CUDA_R_16F;
  EXPECT_CUBLAS(
      cublasLtMatrixLayoutSetAttribute(b_, CUBLASLT_MATRIX_LAYOUT_TYPE, &half, sizeof(half)));
  EXPECT_EQ(multiply(x.data(), y.data(), z.data()), CUBLAS_STATUS_NOT_SUPPORTED);
}

// Without an event the product races with the fill of its input on another stream.
TEST_F(RuntimeCublasLt, RacesAreFound) {
  Buffer<float> x(random(kM * kK, 1)), y(random(kK * kN, 2)), z(kM * kN);
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
  EXPECT_CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  EXPECT_CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  EXPECT_CUDA(cudaEventCreate(&event));
  EXPECT_CUDA(cudaDeviceSynchronize());
  EXPECT_CUDA(cudaMemsetAsync(x.data(), 0, kM * kK * 4, first));
  EXPECT_CUDA(cudaEventRecord(event, first));
  EXPECT_CUDA(cudaStreamWaitEvent(second, event));
  EXPECT_CUBLAS(multiply(x.data(), y.data(), z.data(), 1, 0, second));
  EXPECT_EQ(fault(), "");
  EXPECT_CUDA(cudaMemsetAsync(x.data(), 0, kM * kK * 4, first));
  EXPECT_CUBLAS(multiply(x.data(), y.data(), z.data(), 1, 0, second));
  const std::string text = fault();
  EXPECT_TRUE(holds(text, "race between operations")) << text;
  EXPECT_TRUE(holds(text, "cublasLtMatmul")) << text;
  EXPECT_TRUE(holds(text, "memset")) << text;
}

}  // namespace
}  // namespace vgpu_tests
