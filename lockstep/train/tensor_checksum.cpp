#include "lockstep/train/tensor_checksum.h"

#include <cstring>
#include <string_view>

#include "lockstep/core/check.h"

namespace lockstep::train {
namespace {

constexpr std::uint64_t kPrime = 0x9e3779b97f4a7c15u;
constexpr std::size_t kLanes = 4;  // independent, for the multiplier's latency

// One-to-one in each argument, so that no single change can get lost.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * kPrime;
  return hash ^ (hash >> 29);
}

std::uint64_t hash_bytes(std::uint64_t seed, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint64_t lanes[kLanes] = {seed, seed + 1, seed + 2, seed + 3};
  std::size_t done = 0;
  for (; size - done >= 8 * kLanes; done += 8 * kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      std::uint64_t word;
      std::memcpy(&word, bytes + done + 8 * lane, 8);
      lanes[lane] = mixed(lanes[lane], word);
    }
  }
  std::uint64_t hash = mixed(seed, size);
  for (const std::uint64_t lane : lanes) hash = mixed(hash, lane);
  while (done < size) {
    std::uint64_t word = 0;
    const std::size_t n = std::min<std::size_t>(8, size - done);
    std::memcpy(&word, bytes + done, n);
    hash = mixed(hash, word);
    done += n;
  }
  return hash;
}

}  // namespace

std::uint64_t tensor_checksum(const TensorMap& tensors) {
  std::uint64_t hash = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::string head = fmt::format("{} {} {}", name, tensor.dtype(), tensor.shape());
    hash = hash_bytes(hash, head.data(), head.size());
    const Tensor rows = tensor.contiguous();
    hash = hash_bytes(hash, rows.data(), rows.nbytes());
  }
  return hash;
}

}  // namespace lockstep::train
