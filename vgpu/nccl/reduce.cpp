#include "vgpu/nccl/reduce.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "vgpu/runtime/half_bits.h"

namespace vgpu {
namespace {

template <class A>
A combine(A a, A b, ncclRedOp_t op) {
  switch (op) {
    case ncclProd:
      return static_cast<A>(a * b);
    // A NaN on either side is kept.
    case ncclMax:
      return a < b || b != b ? b : a;
    case ncclMin:
      return b < a || b != b ? b : a;
    default:
      return static_cast<A>(a + b);
  }
}

template <class T>
void reduce_as(const std::vector<const void*>& from, void* to, std::size_t count, ncclRedOp_t op) {
  using A = decltype(widen(T{}));
  std::vector<A> values(from.size());
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t r = 0; r < from.size(); ++r)
      values[r] = widen(static_cast<const T*>(from[r])[i]);
    for (std::size_t stride = 1; stride < values.size(); stride *= 2)
      for (std::size_t r = 0; r + stride < values.size(); r += 2 * stride)
        values[r] = combine(values[r], values[r + stride], op);
    if (op == ncclAvg) values[0] = static_cast<A>(values[0] / static_cast<A>(from.size()));
    static_cast<T*>(to)[i] = Narrow<T>::from(values[0]);
  }
}

}  // namespace

std::size_t element_bytes(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

void reduce_ranks(const std::vector<const void*>& from, void* to, std::size_t count,
                  ncclDataType_t type, ncclRedOp_t op) {
  switch (type) {
    case ncclInt8:
      return reduce_as<std::int8_t>(from, to, count, op);
    case ncclUint8:
      return reduce_as<std::uint8_t>(from, to, count, op);
    case ncclInt32:
      return reduce_as<std::int32_t>(from, to, count, op);
    case ncclUint32:
      return reduce_as<std::uint32_t>(from, to, count, op);
    case ncclInt64:
      return reduce_as<std::int64_t>(from, to, count, op);
    case ncclUint64:
      return reduce_as<std::uint64_t>(from, to, count, op);
    case ncclFloat16:
      return reduce_as<Half>(from, to, count, op);
    case ncclBfloat16:
      return reduce_as<Bfloat16>(from, to, count, op);
    case ncclFloat32:
      return reduce_as<float>(from, to, count, op);
    case ncclFloat64:
      return reduce_as<double>(from, to, count, op);
    default:
      return;
  }
}

}  // namespace vgpu
