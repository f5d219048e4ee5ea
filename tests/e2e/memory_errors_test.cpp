// A wrong shape or a failed allocation is an exception; the process goes on as if it had not been.
// (It took the host down: ggml-org/ggml#123.)
#include <gtest/gtest.h>

#include "lockstep/autograd/ops/matmul.h"
#include "lockstep/core/allocator.h"
#include "lockstep/core/error.h"
#include "support/expect_close.h"
#include "support/message.h"

namespace lockstep::testing {
namespace {

TEST(MistakesOfTheCaller, AreExceptionsAndLeaveNothingBehind) {
  CpuAllocator& allocator = CpuAllocator::instance();
  const std::uint64_t live = allocator.stats().live;
  const std::string shapes = message_of<Error>([] { matmul(ones({2, 3}), ones({4, 5})); });
  EXPECT_HOLDS(shapes, "(2, 3)");
  EXPECT_HOLDS(shapes, "(4, 5)");
  const std::string memory = message_of<OutOfMemoryError>([] { empty({std::int64_t{1} << 50}); });
  EXPECT_HOLDS(memory, std::to_string(std::uint64_t{4} << 50));
  EXPECT_CLOSE(matmul(ones({2, 3}), ones({3, 4})).data(), full({2, 4}, 3), 0, 0);
  EXPECT_EQ(allocator.stats().live, live);
}

}  // namespace
}  // namespace lockstep::testing
