#include "lockstep/kernels/conv2d_cudnn.h"

#include <cudnn.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "lockstep/core/check.h"
#include "lockstep/core/current_stream.h"
#include "lockstep/core/device_guard.h"
#include "lockstep/kernels/library_handle.h"

namespace lockstep::kernels::cuda {
namespace {

void check(cudnnStatus_t status, const char* call) {
  LOCKSTEP_CHECK(status == CUDNN_STATUS_SUCCESS, "conv2d: {} said {}", call,
                 cudnnGetErrorString(status));
}

// A handle may be used by one thread at a time; each thread has its own, per device, as long as the
// process lives.
cudnnHandle_t handle_of(Device device) {
  thread_local std::map<int, cudnnHandle_t> handles;
  cudnnHandle_t& handle = handles[device.index];
  if (!handle) check(cudnnCreate(&handle), "cudnnCreate");
  check(cudnnSetStream(handle, current_native_stream(device)), "cudnnSetStream");
  return handle;
}

cudnnDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return CUDNN_DATA_DOUBLE;
    case DType::kF16:
      return CUDNN_DATA_HALF;
    case DType::kBF16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

int to_int(std::int64_t n) { return static_cast<int>(n); }

// The four descriptors of a convolution; `ok` where cuDNN takes them.
struct Descriptors {
  LibraryHandle<cudnnDestroyTensorDescriptor, cudnnTensorDescriptor_t> x, y;
  LibraryHandle<cudnnDestroyFilterDescriptor, cudnnFilterDescriptor_t> w;
  LibraryHandle<cudnnDestroyConvolutionDescriptor, cudnnConvolutionDescriptor_t> convolution;
  bool ok = false;

  Descriptors(const ConvPlan& p, DType dtype) {
    constexpr std::int64_t kMost = 2147483647;
    if (p.n * p.x_image() > kMost || p.n * p.y_image() > kMost) return;  // cuDNN counts in int
    cudnnTensorDescriptor_t tensor = nullptr;
    check(cudnnCreateTensorDescriptor(&tensor), "cudnnCreateTensorDescriptor");
    x.reset(tensor);
    check(cudnnCreateTensorDescriptor(&tensor), "cudnnCreateTensorDescriptor");
    y.reset(tensor);
    cudnnFilterDescriptor_t filter = nullptr;
    check(cudnnCreateFilterDescriptor(&filter), "cudnnCreateFilterDescriptor");
    w.reset(filter);
    cudnnConvolutionDescriptor_t of_convolution = nullptr;
    check(cudnnCreateConvolutionDescriptor(&of_convolution), "cudnnCreateConvolutionDescriptor");
    convolution.reset(of_convolution);
    const cudnnDataType_t type = type_of(dtype);
    const bool half = dtype == kF16 || dtype == kBF16;
    const auto taken = [](cudnnStatus_t status) { return status == CUDNN_STATUS_SUCCESS; };
    ok = taken(cudnnSetTensor4dDescriptor(x.get(), CUDNN_TENSOR_NHWC, type, to_int(p.n),
                                          to_int(p.ic), to_int(p.ih), to_int(p.iw))) &&
         taken(cudnnSetTensor4dDescriptor(y.get(), CUDNN_TENSOR_NHWC, type, to_int(p.n),
                                          to_int(p.oc), to_int(p.oh), to_int(p.ow))) &&
         taken(cudnnSetFilter4dDescriptor(w.get(), type, CUDNN_TENSOR_NHWC, to_int(p.oc),
                                          to_int(p.ic / p.groups), to_int(p.kh), to_int(p.kw))) &&
         taken(cudnnSetConvolution2dDescriptor(
             convolution.get(), to_int(p.padding[0]), to_int(p.padding[1]), to_int(p.stride[0]),
             to_int(p.stride[1]), to_int(p.dilation[0]), to_int(p.dilation[1]),
             CUDNN_CROSS_CORRELATION, dtype == kF64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT)) &&
         taken(cudnnSetConvolutionGroupCount(convolution.get(), to_int(p.groups))) &&
         // f32 stays f32: TF32 has to be asked for.
         taken(cudnnSetConvolutionMathType(convolution.get(),
                                           half ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH));
  }
};

// What cuDNN chose for a case; asking again would cost more than a small convolution.
template <class Algorithm>
struct Choice {
  Algorithm algorithm;
  std::size_t workspace;
};
using Key = std::array<std::int64_t, 18>;

Key key_of(const ConvPlan& p, DType dtype, Device device) {
  return {p.n,
          p.groups,
          p.ic,
          p.ih,
          p.iw,
          p.oc,
          p.oh,
          p.ow,
          p.kh,
          p.kw,
          p.stride[0],
          p.stride[1],
          p.padding[0],
          p.padding[1],
          p.dilation[0],
          p.dilation[1],
          static_cast<std::int64_t>(dtype),
          device.index};
}

// The first of cuDNN's list, which is by expected time, that always gives the same bits and whose
// workspace can be had; nothing where there is none. `ask(results, found)`, `size(algorithm,
// bytes)`.
template <class Perf, class Ask, class Size>
auto choose(const Key& key, const Ask& ask, const Size& size) {
  using Algorithm = decltype(Perf::algo);
  static std::mutex mutex;
  static auto& known = *new std::map<Key, std::optional<Choice<Algorithm>>>;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = known.try_emplace(key);
  if (!is_new) return at->second;
  constexpr int kMost = 16;
  Perf results[kMost];
  int found = 0;
  if (ask(kMost, &found, results) != CUDNN_STATUS_SUCCESS) return at->second;
  for (int i = 0; i < found; ++i) {
    if (results[i].status != CUDNN_STATUS_SUCCESS || results[i].determinism != CUDNN_DETERMINISTIC)
      continue;
    std::size_t bytes = 0;
    if (size(results[i].algo, &bytes) != CUDNN_STATUS_SUCCESS) continue;
    at->second = Choice<Algorithm>{results[i].algo, bytes};
    break;
  }
  return at->second;
}

// alpha and beta, of the type of the computation.
struct Factors {
  float one_f32 = 1, zero_f32 = 0;
  double one_f64 = 1, zero_f64 = 0;
  bool f64;
  const void* one() const { return f64 ? static_cast<const void*>(&one_f64) : &one_f32; }
  const void* zero() const { return f64 ? static_cast<const void*>(&zero_f64) : &zero_f32; }
};

Factors factors_for(DType dtype) {
  Factors factors;
  factors.f64 = dtype == kF64;
  return factors;
}

Tensor workspace_of(std::size_t bytes, Device device) {
  return empty({static_cast<std::int64_t>(bytes)}, {kU8, device});
}

}  // namespace

bool conv2d_cudnn_forward(const ConvPlan& p, const Tensor& x, const Tensor& w, const Tensor& y) {
  const DeviceGuard guard(x.device());
  const Descriptors d(p, x.dtype());
  if (!d.ok) return false;
  const cudnnHandle_t handle = handle_of(x.device());
  const auto choice = choose<cudnnConvolutionFwdAlgoPerf_t>(
      key_of(p, x.dtype(), x.device()),
      [&](int most, int* found, auto* results) {
        return cudnnGetConvolutionForwardAlgorithm_v7(
            handle, d.x.get(), d.w.get(), d.convolution.get(), d.y.get(), most, found, results);
      },
      [&](auto algorithm, std::size_t* bytes) {
        return cudnnGetConvolutionForwardWorkspaceSize(
            handle, d.x.get(), d.w.get(), d.convolution.get(), d.y.get(), algorithm, bytes);
      });
  if (!choice) return false;
  const Factors f = factors_for(x.dtype());
  const Tensor workspace = workspace_of(choice->workspace, x.device());
  check(cudnnConvolutionForward(handle, f.one(), d.x.get(), x.data(), d.w.get(), w.data(),
                                d.convolution.get(), choice->algorithm, workspace.data(),
                                choice->workspace, f.zero(), d.y.get(), y.data()),
        "cudnnConvolutionForward");
  return true;
}

bool conv2d_cudnn_backward_data(const ConvPlan& p, const Tensor& dy, const Tensor& w,
                                const Tensor& dx) {
  const DeviceGuard guard(dy.device());
  const Descriptors d(p, dy.dtype());
  if (!d.ok) return false;
  const cudnnHandle_t handle = handle_of(dy.device());
  const auto choice = choose<cudnnConvolutionBwdDataAlgoPerf_t>(
      key_of(p, dy.dtype(), dy.device()),
      [&](int most, int* found, auto* results) {
        return cudnnGetConvolutionBackwardDataAlgorithm_v7(
            handle, d.w.get(), d.y.get(), d.convolution.get(), d.x.get(), most, found, results);
      },
      [&](auto algorithm, std::size_t* bytes) {
        return cudnnGetConvolutionBackwardDataWorkspaceSize(
            handle, d.w.get(), d.y.get(), d.convolution.get(), d.x.get(), algorithm, bytes);
      });
  if (!choice) return false;
  const Factors f = factors_for(dy.dtype());
  const Tensor workspace = workspace_of(choice->workspace, dy.device());
  check(cudnnConvolutionBackwardData(handle, f.one(), d.w.get(), w.data(), d.y.get(), dy.data(),
                                     d.convolution.get(), choice->algorithm, workspace.data(),
                                     choice->workspace, f.zero(), d.x.get(), dx.data()),
        "cudnnConvolutionBackwardData");
  return true;
}

bool conv2d_cudnn_backward_weights(const ConvPlan& p, const Tensor& dy, const Tensor& x,
                                   const Tensor& dw) {
  const DeviceGuard guard(dy.device());
  const Descriptors d(p, dy.dtype());
  if (!d.ok) return false;
  const cudnnHandle_t handle = handle_of(dy.device());
  const auto choice = choose<cudnnConvolutionBwdFilterAlgoPerf_t>(
      key_of(p, dy.dtype(), dy.device()),
      [&](int most, int* found, auto* results) {
        return cudnnGetConvolutionBackwardFilterAlgorithm_v7(
            handle, d.x.get(), d.y.get(), d.convolution.get(), d.w.get(), most, found, results);
      },
      [&](auto algorithm, std::size_t* bytes) {
        return cudnnGetConvolutionBackwardFilterWorkspaceSize(
            handle, d.x.get(), d.y.get(), d.convolution.get(), d.w.get(), algorithm, bytes);
      });
  if (!choice) return false;
  const Factors f = factors_for(dy.dtype());
  const Tensor workspace = workspace_of(choice->workspace, dy.device());
  check(cudnnConvolutionBackwardFilter(handle, f.one(), d.x.get(), x.data(), d.y.get(), dy.data(),
                                       d.convolution.get(), choice->algorithm, workspace.data(),
                                       choice->workspace, f.zero(), d.w.get(), dw.data()),
        "cudnnConvolutionBackwardFilter");
  return true;
}

}  // namespace lockstep::kernels::cuda
