// A build without CUDA: there is no device, so nothing that needs one is ever reached.
#include "lockstep/core/current_stream.h"
#include "lockstep/core/device_guard.h"
#include "lockstep/core/device_memory.h"
#include "lockstep/core/error.h"
#include "lockstep/core/graph.h"
#include "lockstep/core/pinned_memory.h"
#include "lockstep/core/stream_state.h"
#include "lockstep/core/tensor_transfer.h"

namespace lockstep {
namespace {

[[noreturn]] void no_cuda() { throw Error("this build of Lockstep has no CUDA"); }

}  // namespace

int cuda_device_count() { return 0; }
Device current_cuda_device() { no_cuda(); }

DeviceGuard::DeviceGuard(Device device) { require_device(device, "device guard"); }
DeviceGuard::~DeviceGuard() = default;

namespace detail {
std::shared_ptr<StreamState> make_cuda_stream(Device, bool) { no_cuda(); }
std::shared_ptr<StreamState> default_cuda_stream(Device) { no_cuda(); }

void copy_with_device(const Tensor&, const Tensor&, bool) { no_cuda(); }
void zero_on_device(const Tensor&) { no_cuda(); }
void fill_on_device(const Tensor&, const void*) { no_cuda(); }

void* allocate_pinned(std::size_t) { no_cuda(); }
void free_pinned(void*) noexcept {}
bool is_pinned_memory(const void*) { return false; }
void record_pinned_stream(const void*, const Stream&) {}
}  // namespace detail

std::uint64_t host_synchronizations() { return 0; }

Stream current_stream(Device) { no_cuda(); }
CUstream_st* current_native_stream(Device) { return nullptr; }
StreamGuard::StreamGuard(const Stream& stream) : former_(stream) {}
StreamGuard::~StreamGuard() = default;

Graph Graph::capture(Device device, const std::function<void()>&) {
  throw Error("graph: only a CUDA device captures work, and this build of Lockstep has none; got " +
              device.str());
}
Device Graph::device() const { no_cuda(); }
void Graph::replay() const { no_cuda(); }

DeviceBlock allocate_device_memory(std::size_t, Device) { no_cuda(); }
void free_device_memory(const DeviceBlock&) noexcept {}
void record_device_stream(const DeviceBlock&, const Stream&) { no_cuda(); }
AllocatorStats device_memory_stats(Device) { return {}; }
void reset_device_memory_peak(Device) {}
std::size_t empty_device_cache() { return 0; }
void set_device_memory_caching(bool) {}

}  // namespace lockstep
