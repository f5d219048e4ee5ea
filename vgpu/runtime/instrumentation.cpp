// The functions that the compiler calls before every load and store of code compiled with
// -fsanitize=thread. Kernels are compiled so, and linked with these instead of the sanitizer's
// runtime: plain pointers in kernels are seen without any wrapper type.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "vgpu/include/vgpu/thread.h"
#include "vgpu/runtime/access.h"
#include "vgpu/runtime/block.h"

using vgpu::AccessKind;
using vgpu::note_access;

namespace {

// In the largest pieces that are aligned.
void note_range(void* p, std::size_t n, AccessKind kind) {
  auto* at = static_cast<char*>(p);
  while (n > 0) {
    std::size_t piece = 16;
    while (piece > n || reinterpret_cast<std::uintptr_t>(at) % piece != 0) piece /= 2;
    note_access(at, piece, kind);
    at += piece;
    n -= piece;
  }
}

}  // namespace

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

#define VGPU_ACCESS(size)                                                        \
  void __tsan_read##size(void* p) { note_access(p, size, AccessKind::kRead); }   \
  void __tsan_write##size(void* p) { note_access(p, size, AccessKind::kWrite); } \
  void __tsan_volatile_read##size(void* p) {                                     \
    vgpu::poll(p);                                                               \
    note_access(p, size, AccessKind::kAtomicRead);                               \
  }                                                                              \
  void __tsan_volatile_write##size(void* p) { note_access(p, size, AccessKind::kWrite); }
VGPU_ACCESS(1)
VGPU_ACCESS(2)
VGPU_ACCESS(4)
VGPU_ACCESS(8)
VGPU_ACCESS(16)
#undef VGPU_ACCESS

// What the compiler knows to be unaligned is not checked for it: byte by byte.
#define VGPU_UNALIGNED(size)                                                                      \
  void __tsan_unaligned_read##size(void* p) {                                                     \
    for (int i = 0; i < size; ++i) note_access(static_cast<char*>(p) + i, 1, AccessKind::kRead);  \
  }                                                                                               \
  void __tsan_unaligned_write##size(void* p) {                                                    \
    for (int i = 0; i < size; ++i) note_access(static_cast<char*>(p) + i, 1, AccessKind::kWrite); \
  }
VGPU_UNALIGNED(2)
VGPU_UNALIGNED(4)
VGPU_UNALIGNED(8)
VGPU_UNALIGNED(16)
#undef VGPU_UNALIGNED

void __tsan_read_range(void* p, std::size_t n) { note_range(p, n, AccessKind::kRead); }
void __tsan_write_range(void* p, std::size_t n) { note_range(p, n, AccessKind::kWrite); }
void __tsan_vptr_update(void** p, void*) { note_access(p, sizeof(void*), AccessKind::kWrite); }
void __tsan_vptr_read(void** p) { note_access(p, sizeof(void*), AccessKind::kRead); }

void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}

// A thread that looks at a flag again and again lets others set it.
#define VGPU_ATOMIC(bits, type)                                                                    \
  type __tsan_atomic##bits##_load(const volatile type* p, int) {                                   \
    vgpu::poll(const_cast<type*>(p));                                                              \
    note_access(const_cast<type*>(p), sizeof(type), AccessKind::kAtomic);                          \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                   \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile type* p, type v, int) {                                \
    note_access(const_cast<type*>(p), sizeof(type), AccessKind::kAtomic);                          \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                      \
  }                                                                                                \
  type __tsan_atomic##bits##_exchange(volatile type* p, type v, int) {                             \
    note_access(const_cast<type*>(p), sizeof(type), AccessKind::kAtomic);                          \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                            \
  }                                                                                                \
  VGPU_FETCH(bits, type, add)                                                                      \
  VGPU_FETCH(bits, type, sub)                                                                      \
  VGPU_FETCH(bits, type, and)                                                                      \
  VGPU_FETCH(bits, type, or)                                                                       \
  VGPU_FETCH(bits, type, xor)                                                                      \
  VGPU_FETCH(bits, type, nand)                                                                     \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* expected, type v, int, \
                                                    int) {                                         \
    vgpu::poll(const_cast<type*>(p));                                                              \
    note_access(const_cast<type*>(p), sizeof(type), AccessKind::kAtomic);                          \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* expected, type v, int a, \
                                                  int b) {                                         \
    return __tsan_atomic##bits##_compare_exchange_strong(p, expected, v, a, b);                    \
  }                                                                                                \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* p, type expected, type v, int a,  \
                                                  int b) {                                         \
    __tsan_atomic##bits##_compare_exchange_strong(p, &expected, v, a, b);                          \
    return expected;                                                                               \
  }
#define VGPU_FETCH(bits, type, op)                                        \
  type __tsan_atomic##bits##_fetch_##op(volatile type* p, type v, int) {  \
    if (v == 0) vgpu::poll(const_cast<type*>(p));                         \
    note_access(const_cast<type*>(p), sizeof(type), AccessKind::kAtomic); \
    return __atomic_fetch_##op(p, v, __ATOMIC_SEQ_CST);                   \
  }
VGPU_ATOMIC(8, std::uint8_t)
VGPU_ATOMIC(16, std::uint16_t)
VGPU_ATOMIC(32, std::uint32_t)
VGPU_ATOMIC(64, std::uint64_t)
#undef VGPU_ATOMIC
#undef VGPU_FETCH

// Calls to these are left in place of inline copies; ranges are noted byte by byte.
void* __tsan_memcpy(void* to, const void* from, std::size_t n) {
  __tsan_read_range(const_cast<void*>(from), n);
  __tsan_write_range(to, n);
  return std::memcpy(to, from, n);
}
void* __tsan_memset(void* to, int value, std::size_t n) {
  __tsan_write_range(to, n);
  return std::memset(to, value, n);
}
void* __tsan_memmove(void* to, const void* from, std::size_t n) {
  __tsan_read_range(const_cast<void*>(from), n);
  __tsan_write_range(to, n);
  return std::memmove(to, from, n);
}

// A false assertion of a kernel; the host's end the program as they always do.
void __assert_fail(const char* text, const char* file, unsigned line,
                   const char* function) noexcept {
  if (vgpu::current_thread == nullptr) {
    std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, text);
    std::abort();
  }
  vgpu::assertion_failed(std::string(file) + ":" + std::to_string(line) + ": " + text);
}

}  // extern "C"
