// A CUDA build on a machine without a device. Run with LOCKSTEP_VGPU_DEVICES=0 by CTest.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lockstep/core/config.h"
#include "lockstep/core/log.h"
#include "lockstep/core/pinned_memory.h"
#include "support/device.h"
#include "support/expect_close.h"
#include "support/message.h"

namespace lockstep {
namespace {

TEST(NoDevice, IsSaidOnceAndTheCpuWorks) {
  std::vector<std::string> said;
  set_log_sink([&](LogLevel, std::string_view text) { said.emplace_back(text); });
  const int count = cuda_device_count();
  cuda_device_count();
  EXPECT_THROW(zeros({2}, {kF32, cuda_device(99)}), Error);
  set_log_sink({});
  if (!kHasCuda || count > 0) GTEST_SKIP() << "a build without CUDA, or one with a device";
  ASSERT_EQ(said.size(), 1u);
  EXPECT_HOLDS(said[0], "no CUDA device: ");
  EXPECT_EQ(testing::message_of<Error>([] {
              zeros({2}, {kF32, cuda_device()});
            }),
            "storage: cuda:0 was asked for, but there is no CUDA driver or device here");
  EXPECT_SAME_BITS(empty_pinned({3}).to(kCpu).clone().slice(0, 0, 0), empty({0}));
  EXPECT_FALSE(is_pinned(pin_memory(ones({3}))));
  EXPECT_SAME_BITS(pin_memory(ones({3})), ones({3}));
}

}  // namespace
}  // namespace lockstep
