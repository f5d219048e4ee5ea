#include "vgpu/runtime/memory_range.h"

#include <algorithm>
#include <string>

#include "vgpu/runtime/fault.h"
#include "vgpu/runtime/global_check.h"
#include "vgpu/runtime/settings.h"

namespace vgpu {
namespace {

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

void note(const MemoryRange& range, bool write, const char* name, std::uint32_t id,
          const VectorClock& known) {
  Allocation& a = *range.allocation;
  if (a.freed)
    throw KernelFault(FaultKind::kUseAfterFree,
                      std::string(name) + " at " + a.describe(a.begin + range.offset));
  const std::string race = note_operation(a, range.offset, range.bytes, write, false, id, known);
  if (!race.empty()) throw KernelFault(FaultKind::kStreamRace, race);
}

}  // namespace

Allocation* allocation_at(const void* pointer) {
  Allocation* a = Arena::instance().find(address_of(pointer));
  return a != nullptr && a->begin == address_of(pointer) && !a->freed ? a : nullptr;
}

cudaError_t look_up(const void* pointer, std::size_t bytes, MemoryRange& range) {
  const std::uintptr_t address = address_of(pointer);
  range = {nullptr, 0, bytes};
  if (!Arena::instance().holds(address)) return cudaSuccess;
  Allocation* a = Arena::instance().find(address);
  if (a == nullptr || a->freed) return cudaErrorInvalidValue;
  range.allocation = a;
  range.offset = address - a->begin;
  return range.offset <= a->bytes && bytes <= a->bytes - range.offset ? cudaSuccess
                                                                      : cudaErrorInvalidValue;
}

void note_read(const MemoryRange& range, const char* name, std::uint32_t id,
               const VectorClock& known, bool initialized) {
  if (range.allocation == nullptr || range.bytes == 0) return;
  note(range, false, name, id, known);
  if (!initialized || !settings().checks_for(FaultKind::kUninitialized)) return;
  Allocation& a = *range.allocation;
  const std::uint8_t* const begin = a.written.begin() + range.offset;
  const std::uint8_t* const gap = std::find(begin, begin + range.bytes, std::uint8_t{0});
  if (gap != begin + range.bytes)
    throw KernelFault(
        FaultKind::kUninitialized,
        std::string(name) + " reads " +
            a.describe(a.begin + range.offset + static_cast<std::size_t>(gap - begin)));
}

void note_write(const MemoryRange& range, const char* name, std::uint32_t id,
                const VectorClock& known) {
  if (range.allocation == nullptr || range.bytes == 0) return;
  note(range, true, name, id, known);
}

void mark_written(const MemoryRange& to) { mark_copied(to, {}); }

void mark_copied(const MemoryRange& to, const MemoryRange& from) {
  if (to.allocation == nullptr || to.allocation->freed) return;
  std::uint8_t* const at = to.allocation->written.begin() + to.offset;
  if (from.allocation == nullptr)
    std::fill_n(at, to.bytes, std::uint8_t{1});
  else
    std::copy_n(from.allocation->written.begin() + from.offset, to.bytes, at);
}

}  // namespace vgpu
