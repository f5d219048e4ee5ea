// What a kernel thread asks of its warp and block.
#include "vgpu/include/vgpu/thread.h"

#include <utility>

#include "vgpu/runtime/access.h"
#include "vgpu/runtime/block.h"
#include "vgpu/runtime/execution_lock.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace vgpu {
namespace {

Thread& self() { return *current_thread; }

unsigned full_mask(const Warp& warp) {
  return warp.lanes.size() == kWarpSize ? ~0u : (1u << warp.lanes.size()) - 1u;
}

// While the runtime works for a kernel thread its own accesses are not the kernel's: standard
// functions that it shares with kernels may be linked from code compiled as theirs.
class Unchecked {
 public:
  explicit Unchecked(Thread& thread) : thread_(thread), checked_(thread.checked) {
    thread.checked = false;
  }
  ~Unchecked() { thread_.checked = checked_; }
  Unchecked(const Unchecked&) = delete;
  Unchecked& operator=(const Unchecked&) = delete;

 private:
  Thread& thread_;
  bool checked_;
};

void wait_for_warp(Thread& t, unsigned mask) {
  const Unchecked unchecked(t);
  if (!((mask >> t.lane) & 1u))
    t.block->fault(FaultKind::kBarrier, "its own lane is not in the mask of its warp operation", t);
  t.mask = mask & full_mask(*t.warp);
  t.state = Thread::State::kAtWarp;
  t.block->suspend(t);
}

void yield(Thread& t) {
  const Unchecked unchecked(t);
  check_deadline(t);
  t.block->suspend(t);  // ready, so it comes again
  let_other_streams_run();
  show_place(t);
}

}  // namespace

void show_place(const Thread& t) {
  threadIdx = t.place.thread;
  blockIdx = t.place.block;
  blockDim = t.place.block_size;
  gridDim = t.place.grid_size;
}

int lane_id() { return self().lane; }

unsigned active_mask() {
  unsigned mask = 0;
  for (const Thread* lane : self().warp->lanes)
    if (lane->state != Thread::State::kEnded) mask |= 1u << lane->lane;
  return mask;
}

int block_barrier(BlockVote vote, int predicate, const std::source_location& site) {
  Thread& t = self();
  {
    const Unchecked unchecked(t);
    t.site = site;
  }
  t.vote = vote;
  t.predicate = predicate;
  t.mask = 0;
  t.state = Thread::State::kAtBlockBarrier;
  t.block->suspend(t);
  return t.vote_result;
}

void warp_barrier(unsigned mask) {
  self().is_warp_barrier = true;
  wait_for_warp(self(), mask);
}

LaneValues exchange(WarpOp kind, unsigned mask, std::uint64_t low, std::uint64_t high) {
  Thread& t = self();
  t.is_warp_barrier = false;
  t.op = kind;
  t.operand[0] = low;
  t.operand[1] = high;
  wait_for_warp(t, mask);
  return t.values;
}

void* dynamic_shared_memory() { return self().block->dynamic_shared(); }

void poll(const void* flag) {
  Thread* const t = current_thread;
  if (t == nullptr) return;
  // The same flag again; or several in turn.
  constexpr unsigned kOften = 16;
  if (std::exchange(t->polled, flag) != flag && ++t->polls % kOften != 0) return;
  yield(*t);
}

void nanosleep() {
  if (current_thread != nullptr) yield(*current_thread);
}

void trap(const char* text) {
  Thread& t = self();
  t.checked = false;
  t.block->fault(FaultKind::kTrap, text, t);
}

void assertion_failed(const std::string& text) {
  Thread& t = self();
  t.checked = false;
  t.block->fault(FaultKind::kAssert, text, t);
}

}  // namespace vgpu
