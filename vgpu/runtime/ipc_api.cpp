// cudaIpc…: handles name a process of this host, a file it has open, and a place in it.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "vgpu/include/vgpu/host_api.h"
#include "vgpu/runtime/allocation.h"
#include "vgpu/runtime/capture.h"
#include "vgpu/runtime/device.h"
#include "vgpu/runtime/execution_lock.h"
#include "vgpu/runtime/memory_range.h"
#include "vgpu/runtime/peer.h"
#include "vgpu/runtime/settings.h"
#include "vgpu/runtime/stream.h"

namespace vgpu {
namespace {

constexpr std::uint64_t kMemory = 0x7667707564656d00, kEvent = 0x7667707565766e00;

struct MemoryHandle {
  std::uint64_t kind;
  int process, file, device;
  std::uint64_t offset, bytes;
};
struct EventHandle {
  std::uint64_t kind;
  int process, file, device;
  unsigned flags;
};
static_assert(sizeof(MemoryHandle) <= CUDA_IPC_HANDLE_SIZE);

template <class To, class From>
To convert(const From& from) {
  To to{};
  std::memcpy(&to, &from, std::min(sizeof(to), sizeof(from)));
  return to;
}

// The device's index in this process; `otherwise` where the process does not see it.
int visible_or(int physical, int otherwise) {
  for (int i = 0; i < settings().devices; ++i)
    if (settings().physical_device(i) == physical) return i;
  return otherwise;
}

// What this process has opened, and how often. Under host_mutex().
struct Opened {
  Allocation* allocation;
  int count;
};
using Place = std::pair<int, std::uint64_t>;
std::map<Place, Opened>& opened() {
  static auto* the = new std::map<Place, Opened>;
  return *the;
}

}  // namespace
}  // namespace vgpu

using vgpu::fail;

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  vgpu::MemoryRange range;
  if (handle == nullptr || vgpu::look_up(pointer, 0, range) != cudaSuccess || !range.is_device() ||
      range.allocation->foreign)
    return fail(cudaErrorInvalidValue);
  vgpu::Allocation& a = *range.allocation;
  // From here on others may write it.
  vgpu::mark_written({&a, 0, a.bytes});
  *handle = vgpu::convert<cudaIpcMemHandle_t>(vgpu::MemoryHandle{
      vgpu::kMemory, getpid(), vgpu::Arena::instance().file(),
      vgpu::settings().physical_device(a.device), vgpu::Arena::instance().offset(a), a.bytes});
  return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags) {
  const auto h = vgpu::convert<vgpu::MemoryHandle>(handle);
  if (pointer == nullptr || flags != cudaIpcMemLazyEnablePeerAccess || h.kind != vgpu::kMemory)
    return fail(cudaErrorInvalidValue);
  if (vgpu::refuse_in_capture(nullptr)) return fail(cudaErrorStreamCaptureUnsupported);
  // As CUDA: a handle is for other processes.
  if (h.process == getpid()) return fail(cudaErrorInvalidResourceHandle);
  const int device = vgpu::current_device();
  if (vgpu::device_at(device) == nullptr) return fail(cudaErrorNoDevice);
  const int owner = vgpu::visible_or(h.device, device);
  std::lock_guard lock(vgpu::host_mutex());
  auto& opened = vgpu::opened();
  const vgpu::Place place{h.process, h.offset};
  auto at = opened.find(place);
  if (at == opened.end()) {
    const std::string path = "/proc/" + std::to_string(h.process) + "/fd/" + std::to_string(h.file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return fail(cudaErrorInvalidResourceHandle);
    vgpu::Allocation* a = vgpu::Arena::instance().open(file, h.offset, owner, h.bytes);
    close(file);
    if (a == nullptr) return fail(cudaErrorMemoryAllocation);
    at = opened.emplace(place, vgpu::Opened{a, 0}).first;
  }
  ++at->second.count;
  if (owner != device) vgpu::enable_peer(device, owner);
  *pointer = reinterpret_cast<void*>(at->second.allocation->begin);
  return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  vgpu::Allocation* a = vgpu::allocation_at(pointer);
  if (a == nullptr || !a->foreign) return fail(cudaErrorInvalidValue);
  if (vgpu::refuse_in_capture(nullptr)) return fail(cudaErrorStreamCaptureUnsupported);
  {
    std::lock_guard lock(vgpu::host_mutex());
    auto& opened = vgpu::opened();
    for (auto at = opened.begin(); at != opened.end(); ++at) {
      if (at->second.allocation != a) continue;
      if (--at->second.count > 0) return cudaSuccess;
      opened.erase(at);
      break;
    }
  }
  for (int device = 0; vgpu::device_at(device) != nullptr; ++device) vgpu::wait_for_device(device);
  vgpu::ExecutionLock running;
  vgpu::Arena::instance().free(a);
  return cudaSuccess;
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  if (handle == nullptr) return fail(cudaErrorInvalidValue);
  if (event == nullptr || event->shared == nullptr) return fail(cudaErrorInvalidResourceHandle);
  *handle = vgpu::convert<cudaIpcEventHandle_t>(
      vgpu::EventHandle{vgpu::kEvent, getpid(), event->shared->file(),
                        vgpu::settings().physical_device(event->device), event->flags});
  return cudaSuccess;
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  const auto h = vgpu::convert<vgpu::EventHandle>(handle);
  if (event == nullptr || h.kind != vgpu::kEvent) return fail(cudaErrorInvalidValue);
  auto shared = vgpu::IpcEvent::open(h.process, h.file);
  if (shared == nullptr) return fail(cudaErrorInvalidResourceHandle);
  auto* made = new CUevent_st;
  made->device = vgpu::visible_or(h.device, vgpu::current_device());
  made->flags = h.flags;
  made->shared = std::move(shared);
  *event = made;
  return cudaSuccess;
}
