#include "vgpu/runtime/execution_lock.h"

#include <sched.h>

#include <mutex>

namespace vgpu {
namespace {

std::mutex& the_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

}  // namespace

ExecutionLock::ExecutionLock() { the_mutex().lock(); }
ExecutionLock::~ExecutionLock() { the_mutex().unlock(); }

void let_other_streams_run() {
  the_mutex().unlock();
  sched_yield();
  the_mutex().lock();
}

}  // namespace vgpu
