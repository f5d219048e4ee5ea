// cudaLaunchKernelEx: the kernel's arguments are copied at the call, and a copy of its own is given
// to every thread, as on a GPU.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <tuple>
#include <utility>

#include "vgpu/host_api.h"

struct cudaLaunchAttribute {};

struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

namespace vgpu {

// `kernel` names the function for cudaFuncSetAttribute and messages.
cudaError_t launch_kernel(const cudaLaunchConfig_t& config, const void* kernel,
                          std::function<void()> body);
cudaError_t set_dynamic_shared_limit(const void* kernel, int bytes);
void check_accesses(bool on);

template <class... P>
struct Call {
  void (*kernel)(P...);
  std::tuple<P...> arguments;

  void operator()() const {
    std::tuple<P...> own = arguments;
    void (*const run)(P...) = kernel;
    check_accesses(true);
    std::apply(run, std::move(own));
    check_accesses(false);
  }
};

}  // namespace vgpu

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...),
                               A&&... arguments) {
  return vgpu::launch_kernel(*config, reinterpret_cast<const void*>(kernel),
                             vgpu::Call<P...>{kernel, {static_cast<P>(arguments)...}});
}

template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute attribute, int value) {
  // The share of the cache is a wish without effect here.
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
  return vgpu::set_dynamic_shared_limit(reinterpret_cast<const void*>(kernel), value);
}
