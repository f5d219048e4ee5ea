// cuDNN's convolutions on the virtual GPU against plain loops, and the checks of calls.
#include <cudnn.h>

#include <random>

#include "vgpu/device_buffer.cuh"
#include "vgpu/runtime/half_bits.h"

namespace vgpu_tests {
namespace {

#define EXPECT_CUDNN(call) EXPECT_EQ(call, CUDNN_STATUS_SUCCESS)

struct Shape {
  int n, c, h, w, k, r, s, pad, stride, dilation, groups;
  int p() const { return (h + 2 * pad - dilation * (r - 1) - 1) / stride + 1; }
  int q() const { return (w + 2 * pad - dilation * (s - 1) - 1) / stride + 1; }
  std::size_t x_size() const { return static_cast<std::size_t>(n * c * h * w); }
  std::size_t w_size() const { return static_cast<std::size_t>(k * (c / groups) * r * s); }
  std::size_t y_size() const { return static_cast<std::size_t>(n * k * p() * q()); }
};

// Channels last, everywhere.
struct Expected {
  std::vector<float> y, dx, dw;
};
Expected plain_loops(const Shape& t, const std::vector<float>& x, const std::vector<float>& w,
                     const std::vector<float>& dy) {
  Expected e{std::vector<float>(t.y_size()), std::vector<float>(t.x_size()),
             std::vector<float>(t.w_size())};
  const int cg = t.c / t.groups, kg = t.k / t.groups;
  for (int n = 0; n < t.n; ++n)
    for (int k = 0; k < t.k; ++k)
      for (int p = 0; p < t.p(); ++p)
        for (int q = 0; q < t.q(); ++q)
          for (int c = 0; c < cg; ++c)
            for (int r = 0; r < t.r; ++r)
              for (int s = 0; s < t.s; ++s) {
                const int h = p * t.stride - t.pad + r * t.dilation;
                const int v = q * t.stride - t.pad + s * t.dilation;
                if (h < 0 || h >= t.h || v < 0 || v >= t.w) continue;
                const auto i =
                    static_cast<std::size_t>(((n * t.h + h) * t.w + v) * t.c + k / kg * cg + c);
                const auto j = static_cast<std::size_t>(((k * t.r + r) * t.s + s) * cg + c);
                const auto o = static_cast<std::size_t>(((n * t.p() + p) * t.q() + q) * t.k + k);
                e.y[o] += x[i] * w[j];
                e.dx[i] += dy[o] * w[j];
                e.dw[j] += dy[o] * x[i];
              }
  return e;
}

// Small whole numbers: every sum is exact in f32.
std::vector<float> random(std::size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(n);
  for (float& x : values) x = static_cast<float>(static_cast<int>(generator() % 7) - 3);
  return values;
}

class RuntimeCudnn : public VirtualGpu {
 protected:
  void SetUp() override {
    VirtualGpu::SetUp();
    EXPECT_CUDNN(cudnnCreate(&handle_));
    EXPECT_CUDNN(cudnnCreateTensorDescriptor(&x_));
    EXPECT_CUDNN(cudnnCreateTensorDescriptor(&y_));
    EXPECT_CUDNN(cudnnCreateFilterDescriptor(&w_));
    EXPECT_CUDNN(cudnnCreateConvolutionDescriptor(&how_));
  }
  void TearDown() override {
    EXPECT_CUDNN(cudnnDestroyConvolutionDescriptor(how_));
    EXPECT_CUDNN(cudnnDestroyFilterDescriptor(w_));
    EXPECT_CUDNN(cudnnDestroyTensorDescriptor(y_));
    EXPECT_CUDNN(cudnnDestroyTensorDescriptor(x_));
    EXPECT_CUDNN(cudnnDestroy(handle_));
    cudaGetLastError();
    VirtualGpu::TearDown();
  }
  void describe(const Shape& t, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    EXPECT_CUDNN(cudnnSetTensor4dDescriptor(x_, CUDNN_TENSOR_NHWC, type, t.n, t.c, t.h, t.w));
    EXPECT_CUDNN(
        cudnnSetFilter4dDescriptor(w_, type, CUDNN_TENSOR_NHWC, t.k, t.c / t.groups, t.r, t.s));
    EXPECT_CUDNN(cudnnSetConvolution2dDescriptor(how_, t.pad, t.pad, t.stride, t.stride, t.dilation,
                                                 t.dilation, CUDNN_CROSS_CORRELATION,
                                                 CUDNN_DATA_FLOAT));
    EXPECT_CUDNN(cudnnSetConvolutionGroupCount(how_, t.groups));
    int n = 0, c = 0, h = 0, w = 0;
    EXPECT_CUDNN(cudnnGetConvolution2dForwardOutputDim(how_, x_, w_, &n, &c, &h, &w));
    EXPECT_EQ(h, t.p());
    EXPECT_EQ(w, t.q());
    EXPECT_CUDNN(cudnnSetTensor4dDescriptor(y_, CUDNN_TENSOR_NHWC, type, n, c, h, w));
  }
  cudnnStatus_t forward(const void* x, const void* w, void* y) {
    return cudnnConvolutionForward(handle_, &one_, x_, x, w_, w, how_,
                                   CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &zero_, y_,
                                   y);
  }

  const float one_ = 1, zero_ = 0;
  cudnnHandle_t handle_ = nullptr;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t how_ = nullptr;
};

constexpr Shape kShapes[] = {{2, 4, 7, 6, 6, 3, 3, 1, 1, 1, 1},
                             {2, 4, 7, 6, 6, 3, 2, 1, 2, 1, 2},
                             {1, 4, 9, 9, 8, 3, 3, 2, 1, 2, 4},
                             {3, 5, 4, 4, 2, 1, 1, 0, 1, 1, 1}};

TEST_F(RuntimeCudnn, ForwardAndBothGradients) {
  for (const Shape& t : kShapes) {
    describe(t);
    const auto x = random(t.x_size(), 1), w = random(t.w_size(), 2), dy = random(t.y_size(), 3);
    const Expected expected = plain_loops(t, x, w, dy);
    Buffer<float> dx_(x), dw_(w), dy_(dy), y(t.y_size()), gx(t.x_size()), gw(t.w_size());
    EXPECT_CUDNN(forward(dx_.data(), dw_.data(), y.data()));
    EXPECT_EQ(y.host(), expected.y);
    EXPECT_CUDNN(cudnnConvolutionBackwardData(handle_, &one_, w_, dw_.data(), y_, dy_.data(), how_,
                                              CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, nullptr, 0, &zero_,
                                              x_, gx.data()));
    EXPECT_EQ(gx.host(), expected.dx);
    for (const float beta : {0.0f, 1.0f})
      EXPECT_CUDNN(cudnnConvolutionBackwardFilter(handle_, &one_, x_, dx_.data(), y_, dy_.data(),
                                                  how_, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
                                                  nullptr, 0, &beta, w_, gw.data()));
    auto twice = expected.dw;
    for (float& v : twice) v *= 2;
    EXPECT_EQ(gw.host(), twice);
    EXPECT_EQ(fault(), "");
  }
}

template <class T>
std::vector<std::uint16_t> narrow(const std::vector<float>& values) {
  std::vector<std::uint16_t> bits;
  for (const float v : values) bits.push_back(vgpu::Narrow<T>::from(v).bits);
  return bits;
}

template <class T, class Forward>
void check_narrow(const Shape& t, const Forward& forward) {
  const auto x = random(t.x_size(), 1), w = random(t.w_size(), 2);
  Buffer<std::uint16_t> a(narrow<T>(x)), b(narrow<T>(w)), y(t.y_size());
  EXPECT_CUDNN(forward(a.data(), b.data(), y.data()));
  EXPECT_EQ(y.host(), narrow<T>(plain_loops(t, x, w, std::vector<float>(t.y_size())).y));
}

TEST_F(RuntimeCudnn, HalfTypes) {
  const auto run = [&](const void* x, const void* w, void* y) { return forward(x, w, y); };
  describe(kShapes[0], CUDNN_DATA_HALF);
  check_narrow<vgpu::Half>(kShapes[0], run);
  describe(kShapes[0], CUDNN_DATA_BFLOAT16);
  check_narrow<vgpu::Bfloat16>(kShapes[0], run);
}

TEST_F(RuntimeCudnn, GradientOfTheBias) {
  const Shape& t = kShapes[0];
  describe(t);
  const auto dy = random(t.y_size(), 3);
  std::vector<float> expected(static_cast<std::size_t>(t.k));
  for (std::size_t i = 0; i < dy.size(); ++i) expected[i % expected.size()] += dy[i];
  Buffer<float> g(dy), db(expected.size());
  cudnnTensorDescriptor_t bias = nullptr;
  EXPECT_CUDNN(cudnnCreateTensorDescriptor(&bias));
  EXPECT_CUDNN(cudnnSetTensor4dDescriptor(bias, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 1, t.k, 1, 1));
  EXPECT_CUDNN(cudnnConvolutionBackwardBias(handle_, &one_, y_, g.data(), &zero_, bias, db.data()));
  EXPECT_EQ(db.host(), expected);
  EXPECT_CUDNN(cudnnDestroyTensorDescriptor(bias));
}

// Not whole numbers: the order of the sum shows. Only the algorithm that says so keeps it.
TEST_F(RuntimeCudnn, AnAlgorithmWithNoPromisedOrderHasNone) {
  const Shape& t = kShapes[0];
  describe(t);
  auto x = random(t.x_size(), 1), dy = random(t.y_size(), 3);
  for (float& v : x) v *= 0.1f;
  for (float& v : dy) v *= 0.3f;
  Buffer<float> a(x), g(dy), dw(t.w_size());
  cudnnConvolutionBwdFilterAlgoPerf_t perf[4];
  int found = 0;
  EXPECT_CUDNN(
      cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle_, x_, y_, how_, w_, 4, &found, perf));
  ASSERT_EQ(found, 2);
  for (int i = 0; i < found; ++i) {
    Buffer<char> workspace(perf[i].memory + 1);
    const auto run = [&] {
      EXPECT_CUDNN(cudnnConvolutionBackwardFilter(handle_, &one_, x_, a.data(), y_, g.data(), how_,
                                                  perf[i].algo, workspace.data(), perf[i].memory,
                                                  &zero_, w_, dw.data()));
      return dw.host();
    };
    const bool same = run() == run();
    EXPECT_EQ(same, perf[i].determinism == CUDNN_DETERMINISTIC) << perf[i].algo;
  }
}

TEST_F(RuntimeCudnn, WrongCallsAreErrors) {
  const Shape& t = kShapes[0];
  describe(t);
  Buffer<float> x(random(t.x_size(), 1)), w(random(t.w_size(), 2)), y(t.y_size());
  std::vector<float> host(t.x_size());
  EXPECT_NE(forward(host.data(), w.data(), y.data()), CUDNN_STATUS_SUCCESS);
  EXPECT_NE(forward(x.data() + 1, w.data(), y.data()), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(forward(x.data(), w.data(), nullptr), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  std::size_t bytes = 0;
  const auto precomputed = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  EXPECT_CUDNN(
      cudnnGetConvolutionForwardWorkspaceSize(handle_, x_, w_, how_, y_, precomputed, &bytes));
  ASSERT_GT(bytes, 0u);
  Buffer<char> workspace(bytes);
  const auto run = [&](std::size_t given) {
    return cudnnConvolutionForward(handle_, &one_, x_, x.data(), w_, w.data(), how_, precomputed,
                                   workspace.data(), given, &zero_, y_, y.data());
  };
  EXPECT_EQ(run(bytes - 1), CUDNN_STATUS_BAD_PARAM);
  EXPECT_CUDNN(run(bytes));
  EXPECT_CUDNN(cudnnSetConvolutionGroupCount(how_, 2));
  EXPECT_EQ(run(bytes), CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  EXPECT_CUDNN(cudnnSetConvolutionGroupCount(how_, 1));
  EXPECT_CUDNN(
      cudnnSetFilter4dDescriptor(w_, CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC, t.k, t.c, t.r, t.s));
  EXPECT_EQ(run(bytes), CUDNN_STATUS_BAD_PARAM);
}

// One workspace for two streams is a race, even where all else is apart.
TEST_F(RuntimeCudnn, ASharedWorkspaceIsARace) {
  const Shape& t = kShapes[0];
  describe(t);
  Buffer<float> x(random(t.x_size(), 1)), w(random(t.w_size(), 2)), y(t.y_size()), z(t.y_size());
  Buffer<char> first(1 << 16), second(1 << 16);
  cudaStream_t one = nullptr, two = nullptr;
  EXPECT_CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  EXPECT_CUDA(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  const auto run = [&](cudaStream_t stream, char* workspace, float* out) {
    EXPECT_CUDNN(cudnnSetStream(handle_, stream));
    EXPECT_CUDNN(cudnnConvolutionForward(handle_, &one_, x_, x.data(), w_, w.data(), how_,
                                         CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                         workspace, 1 << 16, &zero_, y_, out));
  };
  run(one, first.data(), y.data());
  run(two, second.data(), z.data());
  EXPECT_EQ(fault(), "");
  run(one, first.data(), y.data());
  run(two, first.data(), z.data());
  const std::string text = fault();
  EXPECT_TRUE(holds(text, "race between operations: cudnnConvolutionForward")) << text;
  EXPECT_CUDA(cudaStreamDestroy(one));
  EXPECT_CUDA(cudaStreamDestroy(two));
}

}  // namespace
}  // namespace vgpu_tests
