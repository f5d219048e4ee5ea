// Where a tensor's memory lives.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

enum class DeviceType : std::uint8_t { kCpu, kCuda };

struct Device {
  DeviceType type = DeviceType::kCpu;
  std::int8_t index = 0;

  bool is_cpu() const { return type == DeviceType::kCpu; }
  // "cpu" or "cuda:1".
  std::string str() const { return is_cpu() ? "cpu" : "cuda:" + std::to_string(index); }
  bool operator==(const Device&) const = default;
};

inline constexpr Device kCpu{};

}  // namespace lockstep
