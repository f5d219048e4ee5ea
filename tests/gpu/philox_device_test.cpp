#include <gtest/gtest.h>

#include "gpu/philox_kernel_cuda.h"
#include "lockstep/core/tensor.h"

namespace lockstep {
namespace {

TEST(PhiloxOnDevice, GivesTheCpusNumbers) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device, real or virtual";
  constexpr unsigned kBlocks = 300;
  const PhiloxSequence sequence{.seed = 0x123456789abcdefu, .stream = 7, .offset = 0xfffffff0u};
  const Tensor there = empty({4 * kBlocks}, {kI32, cuda_device()});
  testing::philox_numbers(sequence, there.data(), kBlocks);
  const Tensor here = there.to(kCpu);
  for (unsigned i = 0; i < 4 * kBlocks; ++i)
    ASSERT_EQ(static_cast<std::uint32_t>(here.data<std::int32_t>()[i]), sequence.at(i)) << i;
}

}  // namespace
}  // namespace lockstep
