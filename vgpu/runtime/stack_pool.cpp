#include "vgpu/runtime/stack_pool.h"

#include <sys/mman.h>

#include <new>

namespace vgpu {
namespace {
constexpr std::size_t kGuard = 4096;
}

StackPool::~StackPool() {
  for (const auto& stack : free_)
    munmap(static_cast<char*>(stack.sp) - stack.size - kGuard, stack.size + kGuard);
}

boost::context::stack_context StackPool::take() {
  if (!free_.empty()) {
    const auto stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void* base = mmap(nullptr, kBytes + kGuard, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  mprotect(base, kGuard, PROT_NONE);
  boost::context::stack_context stack;
  stack.size = kBytes;
  stack.sp = static_cast<char*>(base) + kGuard + kBytes;
  return stack;
}

}  // namespace vgpu
