// cudaLaunchKernelEx: the kernel's arguments are copied at the call, and a copy of its own is given
// to every thread, as on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>

#include "vgpu/executor.h"
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
                          std::shared_ptr<const KernelCall> call, unsigned launch_bound);
cudaError_t set_dynamic_shared_limit(const void* kernel, int bytes);
void check_accesses(bool on);

// Where __launch_bounds__ has left bytes before functions, in the program or library that launches.
extern "C" __attribute__((weak, visibility("hidden")))
const std::uintptr_t __start___patchable_function_entries[];
extern "C" __attribute__((weak, visibility("hidden")))
const std::uintptr_t __stop___patchable_function_entries[];

// The most threads of a block that the kernel is compiled for.
inline unsigned launch_bound(const void* kernel) {
  constexpr std::uintptr_t kMost = 1024;
  const auto at = reinterpret_cast<std::uintptr_t>(kernel);
  std::uintptr_t bound = kMost;
  for (const std::uintptr_t* entry = __start___patchable_function_entries;
       entry != __stop___patchable_function_entries; ++entry)
    if (at - *entry - 1 < bound) bound = at - *entry;
  return static_cast<unsigned>(bound);
}

template <class... P>
class CallOf final : public KernelCall {
 public:
  CallOf(void (*kernel)(P...), std::tuple<P...> arguments)
      : kernel_(kernel), arguments_(std::move(arguments)) {}

  void run_thread() const override {
    std::tuple<P...> own = arguments_;
    void (*const run)(P...) = kernel_;
    check_accesses(true);
    std::apply(run, std::move(own));
    check_accesses(false);
  }

  std::vector<std::span<const std::byte>> arguments() const override {
    return std::apply(
        [](const P&... each) {
          return std::vector<std::span<const std::byte>>{std::as_bytes(std::span(&each, 1))...};
        },
        arguments_);
  }

 private:
  void (*kernel_)(P...);
  std::tuple<P...> arguments_;
};

}  // namespace vgpu

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...),
                               A&&... arguments) {
  return vgpu::launch_kernel(
      *config, reinterpret_cast<const void*>(kernel),
      std::make_shared<vgpu::CallOf<P...>>(kernel, std::tuple<P...>(static_cast<P>(arguments)...)),
      vgpu::launch_bound(reinterpret_cast<const void*>(kernel)));
}

template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute attribute, int value) {
  // The share of the cache is a wish without effect here.
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
  return vgpu::set_dynamic_shared_limit(reinterpret_cast<const void*>(kernel), value);
}
