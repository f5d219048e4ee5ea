// Device memory, and pinned host memory: where it lies, and what is known of every byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "vgpu/runtime/zeroed_array.h"

namespace vgpu {

inline constexpr std::size_t kGranule = 4;  // bytes that operations are told apart by
inline constexpr int kHostDevice = -1;      // "device" of pinned memory

// Who used a granule last, by operation id; 0: nobody.
struct GranuleUse {
  std::uint32_t write : 31;
  std::uint32_t atomic_write : 1;
  std::array<std::uint32_t, 3> reads;  // of different streams
};
static_assert(sizeof(GranuleUse) == 16);

// Who of the running launch touched a byte last.
struct ByteUse {
  std::uint32_t launch = 0;
  std::uint32_t block = 0;
  std::uint32_t epoch = 0;  // barriers of the block before it
  std::uint16_t thread = 0;
  std::uint16_t flags = 0;  // of BlockAccess
};

struct Allocation {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  int device = 0;
  std::uint64_t serial = 0;  // counts all allocations of the process
  bool freed = false;
  bool foreign = false;               // memory of another process: what it does there is not known
  ZeroedArray<std::uint8_t> written;  // per byte: 0 if nobody has written it
  ZeroedArray<GranuleUse> granules;
  ZeroedArray<ByteUse> writes, reads;  // per byte, made at the first access by a kernel

  std::string describe(
      std::uintptr_t address) const;  // "byte 12 of allocation 3 (400 bytes on device 0)"
};

// One reserved range of addresses for all devices: whether a pointer is ours is one comparison.
// Allocations lie at least a page apart, and addresses are used again only when all are used up.
class Arena {
 public:
  static Arena& instance();

  // Null where the device has not so many bytes left. Aligned to 256 bytes.
  Allocation* allocate(int device, std::size_t bytes);
  // The memory at `offset` of another process's arena, whose file `file` is; null if that fails.
  Allocation* open(int file, std::size_t offset, int device, std::size_t bytes);
  // Its pages are given back; what touches them afterwards is a use after free.
  void free(Allocation* allocation);

  bool holds(std::uintptr_t address) const { return address - begin_ < kBytes; }
  // The allocation at the address, also if freed or if the address is beyond its end but on its
  // last page; null otherwise. Without a lock.
  Allocation* find(std::uintptr_t address) const;
  std::size_t used(int device) const;

  // For other processes of this host: the file that all memory lies in, and where in it.
  int file() const { return file_; }
  std::size_t offset(const Allocation& allocation) const { return allocation.begin - begin_; }

 private:
  Arena();
  static constexpr std::size_t kBytes = std::size_t{1} << 40;
  static constexpr std::size_t kPage = 4096;
  struct State;
  Allocation* place(int file, std::size_t offset, int device, std::size_t bytes);
  std::uintptr_t begin_ = 0;
  int file_ = -1;
  State* state_;
};

}  // namespace vgpu
