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

}  // namespace

Settings settings_from_environment() {
  Settings s;
  s.devices = static_cast<int>(number("LOCKSTEP_VGPU_DEVICES", 2, 16));
  s.memory = number("LOCKSTEP_VGPU_MEMORY", s.memory, std::uint64_t{1} << 34);
  s.seed = number("LOCKSTEP_VGPU_SEED", 0, ~std::uint64_t{0});
  const char* checks = std::getenv("LOCKSTEP_VGPU_CHECK");
  s.checks = checks_of(checks == nullptr ? "" : checks);
  return s;
}

Settings& settings() {
  static Settings the = settings_from_environment();
  return the;
}

}  // namespace vgpu
