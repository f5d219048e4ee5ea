// Generator: state, seeds, streams; Philox against Random123's known answers.
#include "lockstep/core/generator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "support/expect_close.h"

namespace lockstep {
namespace {

// kat_vectors of Random123: counter, key, result of philox4x32 with 10 rounds.
static_assert(philox4x32_10({0, 0, 0, 0}, {0, 0}) ==
              PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                            {0xffffffff, 0xffffffff}) ==
              PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                            {0xa4093822, 0x299f31d0}) ==
              PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST(Philox, PositionsOfOneSequence) {
  Generator whole(9), parts(9);
  const PhiloxSequence all = whole.philox(20);
  const PhiloxSequence first = parts.philox(7), second = parts.philox(12);  // 2 and 3 blocks
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(first.at(i), all.at(i));
  for (std::uint64_t i = 0; i < 12; ++i) EXPECT_EQ(second.at(i), all.at(8 + i));
  EXPECT_EQ(parts.philox(0).offset, 5U);
  // Past 2^32 blocks the position's high word counts on.
  const PhiloxSequence far{1, 2, (std::uint64_t{1} << 32) - 1};
  EXPECT_EQ(far.block(1), philox4x32_10({0, 1, 2, 0}, {1, 0}));
}

TEST(Philox, UniformStaysBelowOne) {
  EXPECT_EQ(philox_uniform(0), 0.0F);
  EXPECT_LT(philox_uniform(0xFFFFFFFF), 1.0F);
  EXPECT_EQ(philox_uniform(0x80000000), 0.5F);
}

TEST(Mt19937, SameNumbersAsTheStandardLibrary) {
  Mt19937 ours(12345);
  std::mt19937 theirs(12345);
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(ours(), theirs()) << i;
}

TEST(Generator, StateContinuesWithTheSameBits) {
  Generator g(11);
  g.set_stream(3);
  for (int i = 0; i < 1000; ++i) g.random();
  g.normal();  // keeps the other half
  g.philox(10);
  const Tensor state = g.state();

  Generator resumed(0);
  resumed.set_state(state);
  EXPECT_SAME_BITS(resumed.state(), state);
  EXPECT_EQ(resumed.normal(), g.normal());
  for (int i = 0; i < 1500; ++i) ASSERT_EQ(resumed.random(), g.random());
  const PhiloxSequence a = g.philox(4), b = resumed.philox(4);
  EXPECT_EQ(a.block(0), b.block(0));
  EXPECT_EQ(b.stream, 3U);
  EXPECT_EQ(b.offset, 3U);
}

TEST(Generator, DamagedStateIsRefusedAndChangesNothing) {
  Generator g(11);
  g.random();
  const Tensor good = g.state();
  const auto refused = [&](const Tensor& bad) {
    EXPECT_THROW(g.set_state(bad), Error);
    EXPECT_SAME_BITS(g.state(), good);
  };
  refused(Tensor());
  refused(zeros({good.numel()}, {.dtype = kU8}));
  refused(good.slice(0, 0, good.numel() - 1));
  refused(zeros(good.shape()));
  const Tensor wrong_flag = good.clone(), wrong_position = good.clone();
  wrong_flag.data<std::uint8_t>()[32] = 2;
  wrong_position.data<std::uint8_t>()[48] = 0xFF;
  wrong_position.data<std::uint8_t>()[49] = 0xFF;
  refused(wrong_flag);
  refused(wrong_position);
}

TEST(Generator, ManualSeedRestartsBothSequencesAndDropsTheKeptNormal) {
  Generator g(21);
  const std::uint32_t first = g.random();
  const PhiloxCounter block = g.philox(4).block(0);
  g.normal();
  g.manual_seed(21);
  EXPECT_EQ(g.random(), first);
  EXPECT_EQ(g.philox(4).block(0), block);
  Generator fresh(21);
  fresh.random();
  EXPECT_EQ(g.normal(), fresh.normal());
}

// huggingface/transformers#37932, facebookresearch/detr#297: equal seeds on all ranks must give
// equal weights but different dropout masks.
TEST(Generator, StreamsPartPhiloxButNotTheTwister) {
  Generator a(42), b(42);
  a.set_stream(0);
  b.set_stream(1);
  EXPECT_SAME_BITS(rand({100}, a), rand({100}, b));
  const PhiloxSequence x = a.philox(1024), y = b.philox(1024);
  int same = 0;
  for (std::uint64_t i = 0; i < 1024; ++i)
    same += (philox_uniform(x.at(i)) < 0.5F) == (philox_uniform(y.at(i)) < 0.5F);
  EXPECT_NEAR(same, 512, 80);  // five standard deviations of independent coins
}

TEST(Generator, EveryThreadHasItsOwnDefault) {
  manual_seed(5);
  const std::uint32_t here = Generator(5).random();
  std::uint32_t untouched = 0, seeded = 0;
  std::thread([&] { untouched = default_generator().random(); }).join();
  std::thread([&] {
    manual_seed(5);
    seeded = default_generator().random();
  }).join();
  EXPECT_EQ(untouched, Generator().random());
  EXPECT_EQ(seeded, here);
  EXPECT_EQ(default_generator().random(), here);
}

}  // namespace
}  // namespace lockstep
