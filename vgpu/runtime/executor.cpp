#include "vgpu/runtime/executor.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "vgpu/runtime/allocation.h"
#include "vgpu/runtime/execution_lock.h"
#include "vgpu/runtime/function_name.h"
#include "vgpu/runtime/settings.h"

namespace vgpu {
namespace {

KernelExecutor& load(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw std::runtime_error("LOCKSTEP_VGPU_EXECUTOR: " + std::string(dlerror()));
  const auto make = reinterpret_cast<KernelExecutorFactory>(dlsym(library, kExecutorFactory));
  if (make == nullptr)
    throw std::runtime_error("LOCKSTEP_VGPU_EXECUTOR: " + path + " has no function " +
                             kExecutorFactory);
  return *make(settings().seed);
}

std::optional<DeviceMemory> memory_at(const void* pointer) {
  Allocation* const at = Arena::instance().find(reinterpret_cast<std::uintptr_t>(pointer));
  if (at == nullptr || at->freed) return std::nullopt;
  return DeviceMemory{reinterpret_cast<std::byte*>(at->begin), at->bytes, at->written.begin()};
}

}  // namespace

std::optional<KernelFault> run_elsewhere(const KernelLaunch& launch) {
  ExecutionLock lock;
  try {
    static KernelExecutor& run = load(settings().executor);
    run({function_symbol(launch.function), launch.grid, launch.block, launch.dynamic_shared,
         launch.call->arguments(), memory_at});
  } catch (const std::exception& error) {
    return KernelFault(FaultKind::kTrap, launch.name + ": " + error.what());
  }
  return std::nullopt;
}

}  // namespace vgpu
