// Which gradients travel together: a pure function of sizes, dtypes and an order.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/core/dtype.h"

namespace lockstep::dist {

// A bucket is closed as soon as its bytes reach its cap, so it may exceed the cap by one parameter;
// a parameter is never split. The first bucket of each dtype has a cap of its own: a small one
// starts communication early.
struct BucketCaps {
  std::size_t first_bytes = std::size_t{1} << 20;
  std::size_t bytes = std::size_t{25} << 20;
};

// Indices of parameters, bucket by bucket. `order` lists every index once, in the order in which
// gradients are expected; one bucket is open per dtype. Buckets come out in the order in which they
// will be complete, that is, of their last members. Throws Error if the lists don't fit together.
std::vector<std::vector<std::size_t>> plan_buckets(std::span<const std::size_t> bytes,
                                                   std::span<const DType> dtypes,
                                                   const BucketCaps& caps,
                                                   std::span<const std::size_t> order);

// Last parameter first: what backward is expected to deliver before it has run once.
std::vector<std::size_t> reverse_order(std::size_t count);

}  // namespace lockstep::dist
