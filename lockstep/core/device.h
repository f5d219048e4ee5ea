// Where a tensor's memory lives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

enum class DeviceType : std::uint8_t { kCpu, kCuda };

struct Device {
  DeviceType type = DeviceType::kCpu;
  std::int8_t index = 0;

  bool is_cpu() const { return type == DeviceType::kCpu; }
  bool is_cuda() const { return type == DeviceType::kCuda; }
  // "cpu" or "cuda:1".
  std::string str() const { return is_cpu() ? "cpu" : "cuda:" + std::to_string(index); }
  bool operator==(const Device&) const = default;
};

inline constexpr Device kCpu{};
constexpr Device cuda_device(int index = 0) {
  return {DeviceType::kCuda, static_cast<std::int8_t>(index)};
}

// "cpu", "cuda" (device 0) or "cuda:1"; throws Error for anything else and for a device that this
// machine or this build does not have.
Device parse_device(std::string_view text);

// How many CUDA devices this process can use. 0 in a build without CUDA and on a machine without
// driver or device; the first call says so to the log.
int cuda_device_count();

// Throws Error saying why unless the device can be used; `op` begins the message.
void require_device(Device device, std::string_view op);

}  // namespace lockstep
