#include "lockstep/core/storage.h"

#include <utility>

namespace lockstep {

Storage::Storage(std::size_t bytes, Device device) : bytes_(bytes), device_(device) {
  if (device.is_cuda()) {
    device_block_ = allocate_device_memory(bytes, device);
    data_ = device_block_.data;
    return;
  }
  block_ = CpuAllocator::instance().allocate(bytes);
  data_ = block_.data;
}

Storage::Storage(void* data, std::size_t bytes, std::function<void(void*)> deleter, Device device)
    : data_(data), bytes_(bytes), deleter_(std::move(deleter)), device_(device) {}

Storage::~Storage() {
  if (deleter_)
    deleter_(data_);
  else if (device_block_.handle)
    free_device_memory(device_block_);
  else
    CpuAllocator::instance().deallocate(block_);
}

void Storage::record_stream(const Stream& stream) const {
  if (device_block_.handle) record_device_stream(device_block_, stream);
}

}  // namespace lockstep
