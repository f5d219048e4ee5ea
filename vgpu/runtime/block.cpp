#include "vgpu/runtime/block.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "vgpu/runtime/settings.h"

namespace vgpu {
namespace {

std::string coordinates(const uint3& at) {
  return "(" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) +
         ")";
}

const char* op_name(WarpOp op) {
  switch (op) {
    case WarpOp::kShuffle:
      return "a shuffle";
    case WarpOp::kVote:
      return "a vote";
    case WarpOp::kMatch:
      return "a match";
    case WarpOp::kReduce:
      return "a reduction";
    case WarpOp::kMatrix:
      return "a matrix operation";
  }
  return "";
}

bool same_place(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         std::strcmp(a.file_name(), b.file_name()) == 0;
}

std::string place_name(const std::source_location& site) {
  const char* const slash = std::strrchr(site.file_name(), '/');
  return std::string("the __syncthreads of ") + (slash == nullptr ? site.file_name() : slash + 1) +
         ":" + std::to_string(site.line());
}

std::string waits_at(const Thread& t) {
  if (t.state == Thread::State::kAtBlockBarrier) return "__syncthreads";
  return t.is_warp_barrier ? "__syncwarp" : op_name(t.op);
}

}  // namespace

thread_local Thread* current_thread = nullptr;

std::string Thread::describe() const {
  return "block " + coordinates(place.block) + " thread " + coordinates(place.thread);
}

Block::Block(const KernelLaunch& launch, uint3 index, std::uint32_t number, StackPool& stacks,
             unsigned char* dynamic_shared, std::mt19937_64& order)
    : launch_(launch),
      index_(index),
      number_(number),
      stacks_(stacks),
      dynamic_shared_(dynamic_shared),
      order_(order) {
  const dim3 size = launch.block;
  const auto count = static_cast<int>(size.x * size.y * size.z);
  warps_.resize(static_cast<std::size_t>((count + kWarpSize - 1) / kWarpSize));
  for (int i = 0; i < count; ++i) {
    auto thread = std::make_unique<Thread>();
    const auto u = static_cast<unsigned>(i);
    thread->place = {
        {u % size.x, u / size.x % size.y, u / size.x / size.y}, index, size, launch.grid};
    thread->index = i;
    thread->lane = i % kWarpSize;
    thread->warp = &warps_[static_cast<std::size_t>(i / kWarpSize)];
    thread->block = this;
    thread->warp->lanes.push_back(thread.get());
    threads_.push_back(std::move(thread));
  }
}

Block::~Block() {
  for (auto& thread : threads_) {
    // One that has not ended is abandoned where it stands; its record lies on its stack.
    if (thread->fiber) new boost::context::fiber(std::move(thread->fiber));
    if (thread->stack.sp != nullptr) stacks_.give_back(thread->stack);
  }
}

void Block::start(Thread& thread) {
  thread.stack = stacks_.take();
  thread.fiber = boost::context::fiber(std::allocator_arg, LentStack{thread.stack},
                                       [this, &thread](boost::context::fiber&& back) {
                                         scheduler_ = std::move(back);
                                         try {
                                           launch_.call->run_thread();
                                         } catch (...) {
                                           error_ = std::current_exception();
                                         }
                                         thread.checked = false;
                                         thread.state = Thread::State::kEnded;
                                         return std::move(scheduler_);
                                       });
}

void Block::run() {
  for (auto& thread : threads_) start(*thread);
  std::vector<Thread*> ready;
  while (true) {
    ready.clear();
    bool all_ended = true;
    for (auto& thread : threads_) {
      if (thread->state == Thread::State::kReady) ready.push_back(thread.get());
      all_ended = all_ended && thread->state == Thread::State::kEnded;
    }
    if (all_ended) return;
    if (ready.empty()) {
      if (!release_block_barrier()) deadlock();
      continue;
    }
    if (settings().seed != 0) std::shuffle(ready.begin(), ready.end(), order_);
    for (Thread* thread : ready) {
      current_thread = thread;
      show_place(*thread);
      thread->fiber = std::move(thread->fiber).resume();
      current_thread = nullptr;
      if (error_) std::rethrow_exception(error_);
    }
    release_warps();
  }
}

void Block::suspend(Thread& thread) {
  const bool checked = std::exchange(thread.checked, false);
  scheduler_ = std::move(scheduler_).resume();
  thread.checked = checked;
}

// All threads that have not ended are there.
bool Block::release_block_barrier() {
  int count = 0, waiting = 0;
  const Thread* first = nullptr;
  bool all = true, any = false;
  BlockVote vote = BlockVote::kNone;
  for (auto& t : threads_) {
    if (t->state == Thread::State::kEnded) continue;
    if (t->state != Thread::State::kAtBlockBarrier) return false;
    if (waiting > 0 && t->vote != vote)
      fault(FaultKind::kBarrier, "threads wait at different kinds of __syncthreads", *t);
    if (first != nullptr && !same_place(first->site, t->site))
      fault(FaultKind::kBarrier,
            "it waits at " + place_name(t->site) + ", but thread " +
                coordinates(first->place.thread) + " at " + place_name(first->site),
            *t);
    first = t.get();
    vote = t->vote;
    ++waiting;
    count += t->predicate != 0;
    all = all && t->predicate != 0;
    any = any || t->predicate != 0;
  }
  ++epoch_;
  for (auto& t : threads_) {
    if (t->state != Thread::State::kAtBlockBarrier) continue;
    t->vote_result = vote == BlockVote::kCount ? count : vote == BlockVote::kAnd ? all : any;
    t->state = Thread::State::kReady;
  }
  return waiting > 0;
}

bool Block::release_warps() {
  bool released = false;
  for (auto& t : threads_)
    if (t->state == Thread::State::kAtWarp) released = release_warp_group(*t) || released;
  return released;
}

// The lanes that the thread waits for are all there, with the same wish.
bool Block::release_warp_group(Thread& thread) {
  Warp& warp = *thread.warp;
  for (Thread* lane : warp.lanes) {
    if (!((thread.mask >> lane->lane) & 1u)) continue;
    if (lane->state == Thread::State::kEnded) continue;  // nobody waits for it
    if (lane->state != Thread::State::kAtWarp) return false;
    const bool same = lane->mask == thread.mask &&
                      lane->is_warp_barrier == thread.is_warp_barrier &&
                      (lane->is_warp_barrier || lane->op == thread.op);
    if (!same) return false;
  }
  LaneValues values{};
  for (Thread* lane : warp.lanes)
    if (((thread.mask >> lane->lane) & 1u) && lane->state == Thread::State::kAtWarp) {
      values.came |= 1u << lane->lane;
      for (int k = 0; k < 2; ++k) values.of[lane->lane][k] = lane->operand[k];
    }
  if (thread.is_warp_barrier) ++warp.epoch;
  for (Thread* lane : warp.lanes) {
    if (!((values.came >> lane->lane) & 1u)) continue;
    lane->values = values;
    lane->state = Thread::State::kReady;
  }
  return true;
}

void Block::deadlock() {
  const Thread* first = nullptr;
  for (const auto& t : threads_) {
    if (t->state == Thread::State::kEnded) continue;
    if (first == nullptr) {
      first = t.get();
    } else if (waits_at(*t) != waits_at(*first) || t->mask != first->mask) {
      fault(FaultKind::kBarrier,
            "it waits at " + waits_at(*first) + " for ever while thread " +
                coordinates(t->place.thread) + " waits at " + waits_at(*t),
            *first);
    }
  }
  fault(FaultKind::kBarrier, "it waits at " + waits_at(*first) + " for ever", *first);
}

void Block::fault(FaultKind kind, const std::string& text, const Thread& thread) {
  const KernelFault fault(kind, launch_.name + ", " + thread.describe() + ": " + text);
  if (current_thread == nullptr) throw fault;
  error_ = std::make_exception_ptr(fault);
  current_thread->checked = false;
  scheduler_ = std::move(scheduler_).resume();
  std::abort();  // nobody resumes it
}

bool Block::owns_stack(std::uintptr_t address, const Thread& thread) const {
  return reinterpret_cast<std::uintptr_t>(thread.stack.sp) - address - 1 < thread.stack.size;
}

}  // namespace vgpu
