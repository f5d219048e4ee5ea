// Stacks of kernel threads: with a guard page, kept for the next block.
#pragma once

#include <boost/context/stack_context.hpp>
#include <cstdint>
#include <vector>

namespace vgpu {

class StackPool {
 public:
  static constexpr std::size_t kBytes = std::size_t{128} << 10;

  ~StackPool();
  boost::context::stack_context take();
  void give_back(boost::context::stack_context stack) { free_.push_back(stack); }

 private:
  std::vector<boost::context::stack_context> free_;
};

// What boost::context::fiber calls. The stack is the kernel thread's, who gives it back itself: a
// fiber that a fault has ended is dropped without unwinding it.
struct LentStack {
  boost::context::stack_context stack;
  boost::context::stack_context allocate() { return stack; }
  void deallocate(boost::context::stack_context&) noexcept {}
};

}  // namespace vgpu
