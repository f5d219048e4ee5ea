// One block while it runs: its threads, their order, their barriers.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstdint>
#include <exception>
#include <memory>
#include <random>
#include <source_location>
#include <string>
#include <vector>

#include "vgpu/include/vgpu/thread.h"
#include "vgpu/runtime/kernel.h"
#include "vgpu/runtime/shared_shadow.h"
#include "vgpu/runtime/stack_pool.h"

namespace vgpu {

struct Warp;
class Block;

struct Thread {
  enum class State : std::uint8_t { kReady, kAtBlockBarrier, kAtWarp, kEnded };

  ThreadPlace place;
  int index = 0;  // within the block
  int lane = 0;
  Warp* warp = nullptr;
  Block* block = nullptr;
  State state = State::kReady;
  bool checked = false;          // accesses are looked at
  const void* polled = nullptr;  // the flag that it read last
  unsigned polls = 0;            // of any flags

  // What it waits for.
  BlockVote vote = BlockVote::kNone;
  std::source_location site;  // of the barrier
  int predicate = 0;
  bool is_warp_barrier = false;
  WarpOp op = WarpOp::kShuffle;
  unsigned mask = 0;
  std::uint64_t operand[2] = {};
  // What it gets.
  int vote_result = 0;
  LaneValues values;

  boost::context::fiber fiber;
  boost::context::stack_context stack;

  std::string describe() const;
};

struct Warp {
  std::uint32_t epoch = 0;  // barriers of the warp so far
  std::vector<Thread*> lanes;
};

class Block {
 public:
  Block(const KernelLaunch& launch, uint3 index, std::uint32_t number, StackPool& stacks,
        unsigned char* dynamic_shared, std::mt19937_64& order);

  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Until every thread has ended. Throws KernelFault.
  void run();

  // Of the thread that runs.
  void suspend(Thread& thread);
  // Ends the block. From a kernel thread it switches away for good instead of throwing: the
  // compiler holds that loads and stores throw nothing.
  [[noreturn]] void fault(FaultKind kind, const std::string& text, const Thread& thread);

  const KernelLaunch& launch() const { return launch_; }
  int device() const { return launch_.device; }
  std::uint32_t number() const { return number_; }
  std::uint32_t epoch() const { return epoch_; }
  unsigned char* dynamic_shared() const { return dynamic_shared_; }
  SharedShadow& shared_shadow() { return shadow_; }
  bool owns_stack(std::uintptr_t address, const Thread& thread) const;

 private:
  void start(Thread& thread);
  bool release_block_barrier();
  bool release_warps();
  bool release_warp_group(Thread& thread);
  [[noreturn]] void deadlock();

  const KernelLaunch& launch_;
  uint3 index_;
  std::uint32_t number_;
  StackPool& stacks_;
  unsigned char* dynamic_shared_;
  std::mt19937_64& order_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Warp> warps_;
  std::uint32_t epoch_ = 0;
  SharedShadow shadow_;
  boost::context::fiber scheduler_;
  std::exception_ptr error_;
};

// Sets threadIdx and its like.
void show_place(const Thread& thread);

// Ends the kernel of the calling thread.
[[noreturn]] void assertion_failed(const std::string& text);

// The thread that this OS thread is running; null outside kernels.
extern thread_local Thread* current_thread;

}  // namespace vgpu
