// cuDNN's calls for convolutions: its checks, then an operation of the handle's stream.
#include <algorithm>
#include <atomic>

#include "vgpu/cudnn/convolution.h"
#include "vgpu/runtime/device.h"
#include "vgpu/runtime/library_operation.h"
#include "vgpu/runtime/stream.h"

namespace vgpu {
namespace {

constexpr std::size_t kWorkspace = 32 << 10;  // of every second algorithm

// Algorithms 0 and 1 are here. Backward, algorithm 0 promises no order, as cuDNN's; for filters it
// has none.
std::size_t workspace_of(int algorithm) { return algorithm == 1 ? kWorkspace : 0; }

cudnnStatus_t make(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                   cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t y, Convolution& c) {
  if (x == nullptr || w == nullptr || how == nullptr || y == nullptr)
    return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  c = {*x, w->tensor, *y, *how, false};
  if (c.x.type != c.w.type || c.x.type != c.y.type) return CUDNN_STATUS_BAD_PARAM;
  const bool is_double = c.x.type == CUDNN_DATA_DOUBLE;
  if (c.how.compute != (is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT))
    return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
  if (c.x.c != c.w.c * c.how.groups || c.w.n % c.how.groups != 0 || c.y.n != c.x.n ||
      c.y.c != c.w.n || c.y.h != c.rows() || c.y.w != c.cols())
    return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
  return CUDNN_STATUS_SUCCESS;
}

// A dense tensor is one range; of others only the elements are touched, not what is between.
template <class Note>
void note_tensor(const cudnnTensorStruct& t, const void* data, const Note& note) {
  const std::size_t element = bytes_of(element_type(t.type));
  const auto* base = static_cast<const char*>(data);
  if (t.is_dense()) return note(base, static_cast<std::size_t>(t.count()) * element);
  const bool last = t.c_stride == 1;
  const std::int64_t run = last ? t.c : 1;
  for (std::int64_t n = 0; n < t.n; ++n)
    for (std::int64_t h = 0; h < t.h; ++h)
      for (std::int64_t w = 0; w < t.w; ++w)
        for (std::int64_t c = 0; c < t.c; c += run)
          note(base + static_cast<std::size_t>(t.at(n, c, h, w)) * element,
               static_cast<std::size_t>(run) * element);
}

double scalar(const void* value, cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? *static_cast<const double*>(value)
                                   : static_cast<double>(*static_cast<const float*>(value));
}

// One call: what it reads, and what it writes at last.
class Call {
 public:
  Call(cudnnHandle_t handle, const char* name, const void* alpha, const void* beta,
       cudnnDataType_t type)
      : handle_(handle), operation_(name), alpha_(scalar(alpha, type)), beta_(scalar(beta, type)) {}

  double alpha() const { return alpha_; }
  double beta() const { return beta_; }
  void reads(const cudnnTensorStruct& t, const void* data) {
    note_tensor(t, data, [&](const void* p, std::size_t bytes) { operation_.reads(p, bytes); });
  }
  void writes(const cudnnTensorStruct& t, void* data) {
    if (beta_ != 0) reads(t, data);
    note_tensor(t, data, [&](const void* p, std::size_t bytes) {
      operation_.writes(const_cast<void*>(p), bytes);
    });
  }
  // Not enough of it, or an algorithm that is not there, is an error of the call.
  cudnnStatus_t use_algorithm(int algorithm, void* workspace, std::size_t bytes) {
    if (algorithm != 0 && algorithm != 1) return CUDNN_STATUS_NOT_SUPPORTED;
    const std::size_t needed = workspace_of(algorithm);
    if (needed > 0 && (workspace == nullptr || bytes < needed)) return CUDNN_STATUS_BAD_PARAM;
    operation_.uses_workspace(workspace, needed);
    return CUDNN_STATUS_SUCCESS;
  }
  cudnnStatus_t run(std::function<void()> compute) {
    cudaStream_t stream =
        handle_->stream != nullptr ? handle_->stream : device_at(handle_->device)->default_stream;
    // The default stream has no handle of its own that could be resolved.
    const int before = current_device();
    if (handle_->stream == nullptr) {
      cudaSetDevice(handle_->device);
      stream = nullptr;
    }
    const cudaError_t error = operation_.enqueue(stream, std::move(compute));
    if (handle_->stream == nullptr) cudaSetDevice(before);
    return error == cudaSuccess             ? CUDNN_STATUS_SUCCESS
           : error == cudaErrorInvalidValue ? CUDNN_STATUS_BAD_PARAM
                                            : CUDNN_STATUS_EXECUTION_FAILED;
  }

 private:
  cudnnHandle_t handle_;
  LibraryOperation operation_;
  double alpha_, beta_;
};

template <class Perf, class Algorithm>
cudnnStatus_t list_algorithms(bool second_first, bool backward, std::size_t limit, int requested,
                              int* found, Perf* results) {
  if (found == nullptr || results == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (requested < 1) return CUDNN_STATUS_BAD_PARAM;
  *found = 0;
  for (const int algorithm : {second_first ? 1 : 0, second_first ? 0 : 1}) {
    if (*found == requested || workspace_of(algorithm) > limit) continue;
    Perf perf{};
    perf.algo = static_cast<Algorithm>(algorithm);
    perf.status = CUDNN_STATUS_SUCCESS;
    perf.time = 1.0f + static_cast<float>(*found);
    perf.memory = workspace_of(algorithm);
    perf.determinism = backward && algorithm == 0 ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
    results[(*found)++] = perf;
  }
  return CUDNN_STATUS_SUCCESS;
}

// What is called twice in a row never runs in the same order.
bool no_promised_order(int algorithm) {
  static std::atomic<bool> reversed{false};
  if (algorithm != 0) return false;
  bool before = reversed;
  while (!reversed.compare_exchange_weak(before, !before)) {
  }
  return !before;
}

cudnnStatus_t workspace_size(cudnnStatus_t checked, int algorithm, std::size_t* bytes) {
  if (checked != CUDNN_STATUS_SUCCESS) return checked;
  if (bytes == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (algorithm != 0 && algorithm != 1) return CUDNN_STATUS_NOT_SUPPORTED;
  *bytes = workspace_of(algorithm);
  return CUDNN_STATUS_SUCCESS;
}

bool any_null(std::initializer_list<const void*> pointers) {
  return std::any_of(pointers.begin(), pointers.end(), [](const void* p) { return p == nullptr; });
}

constexpr std::size_t kNoLimit = ~std::size_t{0};

}  // namespace
}  // namespace vgpu

using vgpu::Convolution;

cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(cudnnConvolutionDescriptor_t convolution,
                                                    cudnnTensorDescriptor_t x,
                                                    cudnnFilterDescriptor_t w, int* n, int* c,
                                                    int* height, int* width) {
  if (vgpu::any_null({convolution, x, w, n, c, height, width}))
    return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  const Convolution call{*x, w->tensor, {}, *convolution, false};
  if (call.x.c != call.w.c * call.how.groups) return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
  *n = static_cast<int>(call.x.n);
  *c = static_cast<int>(call.w.n);
  *height = static_cast<int>(call.rows());
  *width = static_cast<int>(call.cols());
  return *height > 0 && *width > 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w,
                                                      cudnnConvolutionDescriptor_t convolution,
                                                      cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algo,
                                                      std::size_t* bytes) {
  Convolution c;
  return vgpu::workspace_size(vgpu::make(x, w, convolution, y, c), algo, bytes);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w,
                                                     cudnnConvolutionDescriptor_t convolution,
                                                     cudnnTensorDescriptor_t y, int requested,
                                                     int* found,
                                                     cudnnConvolutionFwdAlgoPerf_t* results) {
  Convolution c;
  const cudnnStatus_t status = vgpu::make(x, w, convolution, y, c);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return vgpu::list_algorithms<cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t>(
      true, false, vgpu::kNoLimit, requested, found, results);
}

// Runs the convolution, as cuDNN does: y is overwritten.
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnFilterDescriptor_t w_desc, const void* w, cudnnConvolutionDescriptor_t convolution,
    cudnnTensorDescriptor_t y_desc, void* y, int requested, int* found,
    cudnnConvolutionFwdAlgoPerf_t* results, void* workspace, std::size_t workspace_bytes) {
  const float one = 1, zero = 0;
  const cudnnStatus_t status = cudnnConvolutionForward(
      handle, &one, x_desc, x, w_desc, w, convolution, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
      workspace, workspace_bytes, &zero, y_desc, y);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return vgpu::list_algorithms<cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t>(
      true, false, workspace_bytes, requested, found, results);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      cudnnTensorDescriptor_t x_desc, const void* x,
                                      cudnnFilterDescriptor_t w_desc, const void* w,
                                      cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t algo, void* workspace,
                                      std::size_t workspace_bytes, const void* beta,
                                      cudnnTensorDescriptor_t y_desc, void* y) {
  if (vgpu::any_null({handle, alpha, x, w, beta, y})) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  Convolution c;
  cudnnStatus_t status = vgpu::make(x_desc, w_desc, convolution, y_desc, c);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  vgpu::Call call(handle, "cudnnConvolutionForward", alpha, beta, c.how.compute);
  status = call.use_algorithm(algo, workspace, workspace_bytes);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  call.reads(c.x, x);
  call.reads(c.w, w);
  call.writes(c.y, y);
  return call.run([=, a = call.alpha(), b = call.beta()] { convolve_forward(c, a, x, w, b, y); });
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, cudnnFilterDescriptor_t w,
                                                           cudnnTensorDescriptor_t dy,
                                                           cudnnConvolutionDescriptor_t convolution,
                                                           cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algo,
                                                           std::size_t* bytes) {
  Convolution c;
  return vgpu::workspace_size(vgpu::make(dx, w, convolution, dy, c), algo, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t dx, int requested, int* found,
    cudnnConvolutionBwdDataAlgoPerf_t* results) {
  Convolution c;
  const cudnnStatus_t status = vgpu::make(dx, w, convolution, dy, c);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return vgpu::list_algorithms<cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t>(
      false, true, vgpu::kNoLimit, requested, found, results);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w_desc, const void* w,
    cudnnTensorDescriptor_t dy_desc, const void* dy, cudnnConvolutionDescriptor_t convolution,
    cudnnTensorDescriptor_t dx_desc, void* dx, int requested, int* found,
    cudnnConvolutionBwdDataAlgoPerf_t* results, void* workspace, std::size_t workspace_bytes) {
  const float one = 1, zero = 0;
  const cudnnStatus_t status = cudnnConvolutionBackwardData(
      handle, &one, w_desc, w, dy_desc, dy, convolution, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
      workspace, workspace_bytes, &zero, dx_desc, dx);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return vgpu::list_algorithms<cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t>(
      false, true, workspace_bytes, requested, found, results);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           cudnnFilterDescriptor_t w_desc, const void* w,
                                           cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algo, void* workspace,
                                           std::size_t workspace_bytes, const void* beta,
                                           cudnnTensorDescriptor_t dx_desc, void* dx) {
  if (vgpu::any_null({handle, alpha, w, dy, beta, dx})) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  Convolution c;
  cudnnStatus_t status = vgpu::make(dx_desc, w_desc, convolution, dy_desc, c);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  vgpu::Call call(handle, "cudnnConvolutionBackwardData", alpha, beta, c.how.compute);
  status = call.use_algorithm(algo, workspace, workspace_bytes);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  call.reads(c.w, w);
  call.reads(c.y, dy);
  call.writes(c.x, dx);
  return call.run(
      [=, a = call.alpha(), b = call.beta()] { convolve_backward_data(c, a, w, dy, b, dx); });
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algo, std::size_t* bytes) {
  Convolution c;
  return vgpu::workspace_size(vgpu::make(x, dw, convolution, dy, c), algo, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t dw, int requested, int* found,
    cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  Convolution c;
  const cudnnStatus_t status = vgpu::make(x, dw, convolution, dy, c);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return vgpu::list_algorithms<cudnnConvolutionBwdFilterAlgoPerf_t,
                               cudnnConvolutionBwdFilterAlgo_t>(false, true, vgpu::kNoLimit,
                                                                requested, found, results);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnTensorDescriptor_t dy_desc, const void* dy, cudnnConvolutionDescriptor_t convolution,
    cudnnFilterDescriptor_t dw_desc, void* dw, int requested, int* found,
    cudnnConvolutionBwdFilterAlgoPerf_t* results, void* workspace, std::size_t workspace_bytes) {
  const float one = 1, zero = 0;
  const cudnnStatus_t status = cudnnConvolutionBackwardFilter(
      handle, &one, x_desc, x, dy_desc, dy, convolution, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
      workspace, workspace_bytes, &zero, dw_desc, dw);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return vgpu::list_algorithms<cudnnConvolutionBwdFilterAlgoPerf_t,
                               cudnnConvolutionBwdFilterAlgo_t>(false, true, workspace_bytes,
                                                                requested, found, results);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             cudnnTensorDescriptor_t x_desc, const void* x,
                                             cudnnTensorDescriptor_t dy_desc, const void* dy,
                                             cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t algo, void* workspace,
                                             std::size_t workspace_bytes, const void* beta,
                                             cudnnFilterDescriptor_t dw_desc, void* dw) {
  if (vgpu::any_null({handle, alpha, x, dy, beta, dw})) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  Convolution c;
  cudnnStatus_t status = vgpu::make(x_desc, dw_desc, convolution, dy_desc, c);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  vgpu::Call call(handle, "cudnnConvolutionBackwardFilter", alpha, beta, c.how.compute);
  status = call.use_algorithm(algo, workspace, workspace_bytes);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  call.reads(c.x, x);
  call.reads(c.y, dy);
  call.writes(c.w, dw);
  c.reversed = vgpu::no_promised_order(algo);
  return call.run(
      [=, a = call.alpha(), b = call.beta()] { convolve_backward_filter(c, a, x, dy, b, dw); });
}

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* alpha,
                                           cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const void* beta, cudnnTensorDescriptor_t db_desc,
                                           void* db) {
  if (vgpu::any_null({handle, alpha, dy_desc, dy, beta, db_desc, db}))
    return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  const cudnnTensorStruct from = *dy_desc, to = *db_desc;
  if (to.n != 1 || to.h != 1 || to.w != 1 || to.c != from.c || to.type != from.type)
    return CUDNN_STATUS_BAD_PARAM;
  vgpu::Call call(handle, "cudnnConvolutionBackwardBias", alpha, beta, from.type);
  call.reads(from, dy);
  call.writes(to, db);
  return call.run(
      [=, a = call.alpha(), b = call.beta()] { vgpu::sum_channels(from, a, dy, b, to, db); });
}
