#include "lockstep/core/storage.h"

#include <utility>

#include "lockstep/core/check.h"

namespace lockstep {

Storage::Storage(std::size_t bytes, Device device) : bytes_(bytes), device_(device) {
  LOCKSTEP_CHECK(device.is_cpu(), "storage: this build has no device {}", device.str());
  block_ = CpuAllocator::instance().allocate(bytes);
  data_ = block_.data;
}

Storage::Storage(void* data, std::size_t bytes, std::function<void(void*)> deleter, Device device)
    : data_(data), bytes_(bytes), deleter_(std::move(deleter)), device_(device) {}

Storage::~Storage() {
  if (deleter_)
    deleter_(data_);
  else
    CpuAllocator::instance().deallocate(block_);
}

}  // namespace lockstep
