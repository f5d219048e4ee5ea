// Tensors in the memory of CUDA devices: copies within and between devices, zeros, fills.
#include "lockstep/core/tensor_transfer.h"

#include <cstring>

#include "lockstep/core/copy_kernels_cuda.h"
#include "lockstep/core/current_stream.h"
#include "lockstep/core/device_guard.h"
#include "lockstep/core/error_cuda.h"
#include "lockstep/core/pinned_memory.h"
#include "lockstep/core/tensor.h"

namespace lockstep::detail {
namespace {

bool same_layout(const Tensor& a, const Tensor& b) {
  if (!a.is_dense() || !b.is_dense()) return false;
  for (int i = 0; i < a.dim(); ++i)
    if (a.shape()[i] != 1 && a.strides()[i] != b.strides()[i]) return false;
  return true;
}

void copy_on_one_device(const Tensor& dst, const Tensor& src) {
  const DeviceGuard guard(dst.device());
  CUstream_st* stream = current_native_stream(dst.device());
  if (same_layout(dst, src)) {
    cuda::check(
        cudaMemcpyAsync(dst.data(), src.data(), dst.nbytes(), cudaMemcpyDeviceToDevice, stream),
        "copy on one device");
    return;
  }
  cuda::copy_strided(plan_copy(dst, src), dst.data(), src.data(), static_cast<int>(dst.itemsize()),
                     stream);
}

// Of dense tensors of one layout on different devices.
void copy_bytes(const Tensor& dst, const Tensor& src, bool non_blocking) {
  const Device device = dst.device().is_cuda() ? dst.device() : src.device();
  const DeviceGuard guard(device);
  Stream stream = current_stream(device);
  const bool between_devices = dst.device().is_cuda() && src.device().is_cuda();
  // The source's device may still be writing it.
  if (between_devices) stream.wait(current_stream(src.device()).record());
  cuda::check(
      cudaMemcpyAsync(dst.data(), src.data(), dst.nbytes(), cudaMemcpyDefault, stream.native()),
      "copy between devices");
  if (between_devices) {
    // What the source's device does next, freeing included, comes after the copy.
    current_stream(src.device()).wait(stream.record());
    return;
  }
  const Tensor& host = dst.device().is_cpu() ? dst : src;
  if (non_blocking && is_pinned(host))
    record_pinned_stream(host.storage()->data(), stream);
  else
    stream.synchronize();
}

}  // namespace

void copy_with_device(const Tensor& dst, const Tensor& src, bool non_blocking) {
  if (dst.device() == src.device()) return copy_on_one_device(dst, src);
  if (same_layout(dst, src)) return copy_bytes(dst, src, non_blocking);
  // Layouts change on the side that is dense afterwards; temporaries make the host wait.
  if (dst.is_dense()) {
    Tensor staged = empty_like(dst);
    if (staged.device() != src.device())
      staged = Tensor(std::make_shared<Storage>(dst.nbytes(), src.device()), dst.shape(),
                      dst.strides(), 0, dst.dtype());
    copy_elements(staged, src);
    return copy_bytes(dst, staged, false);
  }
  copy_elements(dst, src.to(dst.device()));
}

void zero_on_device(const Tensor& tensor) {
  if (!tensor.is_dense()) {
    const std::uint64_t zero = 0;
    return fill_on_device(tensor, &zero);
  }
  const DeviceGuard guard(tensor.device());
  cuda::check(
      cudaMemsetAsync(tensor.data(), 0, tensor.nbytes(), current_native_stream(tensor.device())),
      "zero");
}

void fill_on_device(const Tensor& tensor, const void* element) {
  if (tensor.numel() == 0) return;
  const DeviceGuard guard(tensor.device());
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, tensor.itemsize());
  cuda::fill_strided(plan_copy(tensor, tensor), tensor.data(), bits,
                     static_cast<int>(tensor.itemsize()), current_native_stream(tensor.device()));
}

}  // namespace lockstep::detail
