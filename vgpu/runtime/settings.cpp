#include "vgpu/runtime/settings.h"

#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace vgpu {
namespace {

std::uint64_t number(const char* name, std::uint64_t otherwise, std::uint64_t most) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == 0) return otherwise;
  const std::string_view given(text);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
  if (error != std::errc{} || end != given.data() + given.size() || value > most)
    throw std::invalid_argument(std::string(name) + " is \"" + text +
                                "\", must be a whole number up to " + std::to_string(most));
  return value;
}

unsigned bit(FaultKind kind) { return 1u << static_cast<int>(kind); }

unsigned checks_of(std::string_view list) {
  const unsigned switchable = bit(FaultKind::kOutOfBounds) | bit(FaultKind::kUseAfterFree) |
                              bit(FaultKind::kMisaligned) | bit(FaultKind::kUninitialized) |
                              bit(FaultKind::kSharedRace) | bit(FaultKind::kBlockRace) |
                              bit(FaultKind::kStreamRace);
  if (list.empty() || list == "all") return ~0u;
  unsigned checks = ~switchable;
  if (list == "none") return checks;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view word = list.substr(0, comma);
    if (word == "bounds")
      checks |= bit(FaultKind::kOutOfBounds) | bit(FaultKind::kUseAfterFree);
    else if (word == "align")
      checks |= bit(FaultKind::kMisaligned);
    else if (word == "init")
      checks |= bit(FaultKind::kUninitialized);
    else if (word == "shared")
      checks |= bit(FaultKind::kSharedRace);
    else if (word == "block")
      checks |= bit(FaultKind::kBlockRace);
    else if (word == "stream")
      checks |= bit(FaultKind::kStreamRace);
    else
      throw std::invalid_argument("LOCKSTEP_VGPU_CHECK has \"" + std::string(word) +
                                  "\"; known are all, none, bounds, align, init, shared, block, "
                                  "stream");
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return checks;
}

// As CUDA: the list ends at the first that is not a device.
std::vector<int> visible_devices(const char* list, int devices) {
  std::vector<int> visible;
  std::string_view rest(list);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    int index = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
    if (error != std::errc{} || end != word.data() + word.size() || index < 0 || index >= devices)
      break;
    visible.push_back(index);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return visible;
}

}  // namespace

Settings settings_from_environment() {
  Settings s;
  s.devices = static_cast<int>(number("LOCKSTEP_VGPU_DEVICES", 2, 16));
  s.memory = number("LOCKSTEP_VGPU_MEMORY", s.memory, std::uint64_t{1} << 34);
  s.seed = number("LOCKSTEP_VGPU_SEED", 0, ~std::uint64_t{0});
  s.deadline = static_cast<double>(number("LOCKSTEP_VGPU_DEADLINE", 600, 1000000));
  const char* checks = std::getenv("LOCKSTEP_VGPU_CHECK");
  s.checks = checks_of(checks == nullptr ? "" : checks);
  const char* log = std::getenv("LOCKSTEP_VGPU_LOG");
  s.log = log != nullptr && *log != 0;
  if (const char* executor = std::getenv("LOCKSTEP_VGPU_EXECUTOR")) s.executor = executor;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    s.visible = visible_devices(visible, s.devices);
    s.devices = static_cast<int>(s.visible.size());
  }
  return s;
}

Settings& settings() {
  static auto* the = new Settings(settings_from_environment());
  return *the;
}

}  // namespace vgpu
