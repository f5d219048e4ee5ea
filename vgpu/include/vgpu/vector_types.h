// CUDA's small vector types, with CUDA's sizes and alignments.
#pragma once

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

// name1 … name4 of one element type; 2 and 4 are aligned to their size, up to 16 bytes.
#define VGPU_VECTORS(type, name)                                                        \
  struct name##1 {                                                                      \
    type x;                                                                             \
  };                                                                                    \
  struct alignas(2 * sizeof(type)) name##2 {                                            \
    type x, y;                                                                          \
  };                                                                                    \
  struct name##3 {                                                                      \
    type x, y, z;                                                                       \
  };                                                                                    \
  struct alignas(4 * sizeof(type) > 16 ? 16 : 4 * sizeof(type)) name##4 {               \
    type x, y, z, w;                                                                    \
  };                                                                                    \
  inline constexpr name##1 make_##name##1(type x) { return {x}; }                       \
  inline constexpr name##2 make_##name##2(type x, type y) { return {x, y}; }            \
  inline constexpr name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  inline constexpr name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

VGPU_VECTORS(signed char, char)
VGPU_VECTORS(unsigned char, uchar)
VGPU_VECTORS(short, short)
VGPU_VECTORS(unsigned short, ushort)
VGPU_VECTORS(int, int)
VGPU_VECTORS(unsigned, uint)
VGPU_VECTORS(long long, longlong)
VGPU_VECTORS(unsigned long long, ulonglong)
VGPU_VECTORS(float, float)
VGPU_VECTORS(double, double)
#undef VGPU_VECTORS
