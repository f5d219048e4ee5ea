#include "vgpu/runtime/peer.h"

#include <array>
#include <atomic>
#include <map>
#include <shared_mutex>

#include "vgpu/include/vgpu/host_api.h"
#include "vgpu/runtime/allocation.h"
#include "vgpu/runtime/device.h"

namespace vgpu {
namespace {

constexpr std::size_t kMostDevices = 16;
std::array<std::array<std::atomic<bool>, kMostDevices>, kMostDevices> peers{};

std::atomic<bool>& enabled(int device, int peer) {
  return peers[static_cast<std::size_t>(device)][static_cast<std::size_t>(peer)];
}

struct Registered {
  std::shared_mutex mutex;
  std::map<std::uintptr_t, std::size_t> ranges;
};
Registered& registered() {
  static auto* the = new Registered;
  return *the;
}

// The peer of a call: another device that exists.
cudaError_t check_peer(int peer, unsigned flags) {
  if (flags != 0) return cudaErrorInvalidValue;
  return device_at(peer) == nullptr || peer == current_device() ? cudaErrorInvalidDevice
                                                                : cudaSuccess;
}

}  // namespace

bool may_access(int device, int owner) {
  return owner == device || owner == kHostDevice || enabled(device, owner);
}

void enable_peer(int device, int peer) { enabled(device, peer) = true; }

bool is_registered(std::uintptr_t address, std::size_t bytes) {
  Registered& r = registered();
  std::shared_lock lock(r.mutex);
  auto after = r.ranges.upper_bound(address);
  if (after == r.ranges.begin()) return false;
  const auto& [begin, length] = *--after;
  return address - begin < length && bytes <= length - (address - begin);
}

}  // namespace vgpu

using vgpu::fail;

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr) return fail(cudaErrorInvalidValue);
  if (vgpu::device_at(device) == nullptr || vgpu::device_at(peer) == nullptr)
    return fail(cudaErrorInvalidDevice);
  *can = device != peer;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (const cudaError_t error = vgpu::check_peer(peer, flags); error != cudaSuccess)
    return fail(error);
  if (vgpu::enabled(vgpu::current_device(), peer).exchange(true))
    return fail(cudaErrorPeerAccessAlreadyEnabled);
  return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  if (const cudaError_t error = vgpu::check_peer(peer, 0); error != cudaSuccess) return fail(error);
  if (!vgpu::enabled(vgpu::current_device(), peer).exchange(false))
    return fail(cudaErrorPeerAccessNotEnabled);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (pointer == nullptr || bytes == 0 || vgpu::Arena::instance().holds(address))
    return fail(cudaErrorInvalidValue);
  auto& r = vgpu::registered();
  std::unique_lock lock(r.mutex);
  const auto after = r.ranges.lower_bound(address);
  const bool meets_next = after != r.ranges.end() && after->first - address < bytes;
  const bool meets_last =
      after != r.ranges.begin() && address - std::prev(after)->first < std::prev(after)->second;
  if (meets_next || meets_last) return fail(cudaErrorHostMemoryAlreadyRegistered);
  r.ranges[address] = bytes;
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer) {
  auto& r = vgpu::registered();
  std::unique_lock lock(r.mutex);
  if (r.ranges.erase(reinterpret_cast<std::uintptr_t>(pointer)) == 0)
    return fail(cudaErrorHostMemoryNotRegistered);
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* pointer, unsigned flags) {
  if (device_pointer == nullptr || flags != 0) return fail(cudaErrorInvalidValue);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const vgpu::Allocation* a = vgpu::Arena::instance().find(address);
  const bool pinned = a != nullptr && !a->freed && a->device == vgpu::kHostDevice;
  if (!pinned && !vgpu::is_registered(address, 1)) return fail(cudaErrorInvalidValue);
  *device_pointer = pointer;  // one address space, as with CUDA on 64-bit Linux
  return cudaSuccess;
}
