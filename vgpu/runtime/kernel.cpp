#include "vgpu/runtime/kernel.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <numeric>
#include <random>
#include <vector>

#include "vgpu/runtime/access.h"
#include "vgpu/runtime/block.h"
#include "vgpu/runtime/execution_lock.h"
#include "vgpu/runtime/executor.h"
#include "vgpu/runtime/global_check.h"
#include "vgpu/runtime/settings.h"

namespace vgpu {
namespace {

constexpr std::size_t kMostShared = std::size_t{228} << 10;

// Of this OS thread, for all kernels it runs.
struct Worker {
  StackPool stacks;
  unsigned char* shared = static_cast<unsigned char*>(
      mmap(nullptr, kMostShared, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ~Worker() { munmap(shared, kMostShared); }
};

}  // namespace

std::optional<KernelFault> run_kernel(const KernelLaunch& launch, std::uint32_t id,
                                      const VectorClock& known) {
  if (!settings().executor.empty()) return run_elsewhere(launch);
  thread_local Worker worker;
  std::mt19937_64 order(settings().seed * 1000003 + id);
  const dim3 grid = launch.grid;
  const std::size_t blocks = std::size_t{grid.x} * grid.y * grid.z;
  std::vector<std::uint32_t> numbers(blocks);
  std::iota(numbers.begin(), numbers.end(), 0u);
  if (settings().seed != 0) std::shuffle(numbers.begin(), numbers.end(), order);
  std::optional<KernelFault> fault;
  {
    ExecutionLock lock;
    forget_block_order();
  }
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                            std::chrono::duration<double>(settings().deadline));
  for (const std::uint32_t number : numbers) {
    ExecutionLock lock;
    running_kernel = {id, &known, reinterpret_cast<std::uintptr_t>(worker.shared),
                      launch.dynamic_shared, deadline};
    const uint3 index{number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y};
    try {
      Block block(launch, index, number, worker.stacks, worker.shared, order);
      block.run();
    } catch (const KernelFault& error) {
      fault = error;
    } catch (const std::exception& error) {
      fault = KernelFault(FaultKind::kTrap, launch.name + ": " + error.what());
    }
    running_kernel = {};
    if (fault) break;
  }
  return fault;
}

}  // namespace vgpu
