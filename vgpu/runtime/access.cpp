#include "vgpu/runtime/access.h"

#include <link.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "vgpu/runtime/block.h"
#include "vgpu/runtime/global_check.h"
#include "vgpu/runtime/peer.h"
#include "vgpu/runtime/settings.h"

namespace vgpu {
namespace {

struct Range {
  std::uintptr_t begin, end;
  bool holds(std::uintptr_t address) const { return address >= begin && address < end; }
};

// The thread-local variables of the program and its libraries for this OS thread: among them are
// the kernels' static shared variables.
std::vector<Range> thread_local_ranges() {
  std::vector<Range> ranges;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        if (info->dlpi_tls_data == nullptr) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i)
          if (info->dlpi_phdr[i].p_type == PT_TLS) {
            const auto begin = reinterpret_cast<std::uintptr_t>(info->dlpi_tls_data);
            static_cast<std::vector<Range>*>(out)->push_back(
                {begin, begin + info->dlpi_phdr[i].p_memsz});
          }
        return 0;
      },
      &ranges);
  return ranges;
}

// Constants and __device__ variables lie in the images of program and libraries.
const std::vector<Range>& image_ranges() {
  static const auto* ranges = [] {
    auto* all = new std::vector<Range>;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& part = info->dlpi_phdr[i];
            if (part.p_type == PT_LOAD)
              static_cast<std::vector<Range>*>(out)->push_back(
                  {info->dlpi_addr + part.p_vaddr, info->dlpi_addr + part.p_vaddr + part.p_memsz});
          }
          return 0;
        },
        all);
    return all;
  }();
  return *ranges;
}

bool in_images(std::uintptr_t address) {
  return std::any_of(image_ranges().begin(), image_ranges().end(),
                     [&](const Range& r) { return r.holds(address); });
}

struct SharedPlace {
  std::size_t offset;  // in the block's shadow
  const char* name;
  std::size_t shown;  // offset in the variable's own range
};

// Static shared variables first, then dynamic shared memory, in one row.
std::optional<SharedPlace> shared_place(std::uintptr_t address) {
  thread_local const std::vector<Range> statics = thread_local_ranges();
  std::size_t before = 0;
  for (const Range& range : statics) {
    if (range.holds(address))
      return SharedPlace{before + (address - range.begin), "static shared memory",
                         address - range.begin};
    before += range.end - range.begin;
  }
  const std::size_t offset = address - running_kernel.shared_begin;
  if (offset < running_kernel.shared_bytes)
    return SharedPlace{before + offset, "dynamic shared memory", offset};
  return std::nullopt;
}

const char* verb(AccessKind kind) {
  return kind == AccessKind::kRead ? "read" : kind == AccessKind::kWrite ? "write" : "atomic";
}

std::string words(AccessKind kind, std::size_t bytes) {
  return std::string(verb(kind)) + " of " + std::to_string(bytes) + " bytes";
}

void check_shared(Thread& t, const SharedPlace& place, std::size_t bytes, AccessKind kind) {
  const Moment now{t.index, t.index / kWarpSize, t.block->epoch(), t.warp->epoch};
  const auto problem =
      t.block->shared_shadow().access(place.offset, bytes, writes(kind), is_atomic(kind), now);
  if (!problem) return;
  const std::size_t shown = place.shown + (problem->offset - place.offset);
  std::string text = words(kind, bytes) + " at byte " + std::to_string(shown) + " of " + place.name;
  if (problem->kind == FaultKind::kSharedRace)
    text += ", which thread number " + std::to_string(problem->other_thread) + " " +
            (problem->other_wrote ? "wrote" : "read") + " with no barrier in between";
  t.block->fault(problem->kind, text, t);
}

}  // namespace

thread_local RunningKernel running_kernel;

void check_accesses(bool on) {
  if (current_thread != nullptr) current_thread->checked = on;
}

void check_deadline(Thread& t) {
  if (std::chrono::steady_clock::now() < running_kernel.deadline) return;
  t.block->fault(FaultKind::kEndless,
                 "the kernel still runs after " + std::to_string(settings().deadline) +
                     " s (LOCKSTEP_VGPU_DEADLINE), " +
                     (t.polled == nullptr ? std::string("without end")
                                          : "this thread last waiting for a flag"),
                 t);
}

void note_access(const void* pointer, std::size_t bytes, AccessKind kind) {
  Thread* const t = current_thread;
  if (t == nullptr || !t->checked || bytes == 0) return;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (t->block->owns_stack(address, *t)) return;
  // What is noted must not be noted itself, should an instrumented inline function be called.
  t->checked = false;
  constexpr std::uint32_t kOften = 1 << 16;
  if (++running_kernel.accesses % kOften == 0) check_deadline(*t);
  const Settings& s = settings();
  if (s.checks_for(FaultKind::kMisaligned) && (bytes & (bytes - 1)) == 0 && bytes <= 16 &&
      address % bytes != 0)
    t->block->fault(FaultKind::kMisaligned,
                    words(kind, bytes) + " at an address that is " +
                        std::to_string(address % bytes) + " bytes beyond a multiple of " +
                        std::to_string(bytes),
                    *t);
  if (Arena::instance().holds(address)) {
    check_global(*t, address, bytes, kind);
  } else if (const auto place = shared_place(address)) {
    check_shared(*t, *place, bytes, kind);
  } else if (s.checks_for(FaultKind::kOutOfBounds) && !in_images(address) &&
             !is_registered(address, bytes)) {
    t->block->fault(FaultKind::kOutOfBounds,
                    words(kind, bytes) +
                        " at an address that no device can reach (memory of the "
                        "host, of another thread, or null)",
                    *t);
  }
  t->checked = true;
}

}  // namespace vgpu
