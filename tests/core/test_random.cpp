// Random numbers against PyTorch's (tests/reference/make_random.py), bit for bit.
#include "lockstep/core/random.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>

#include "lockstep/core/box_muller.h"
#include "lockstep/core/error.h"
#include "lockstep/core/half.h"
#include "lockstep/core/safetensors.h"
#include "support/expect_close.h"

namespace lockstep {
namespace {

using Values = std::map<std::string, Tensor>;

const Values& reference() {
  static const Values values =
      load_safetensors(LOCKSTEP_SOURCE_DIR "/tests/reference/values/random.safetensors");
  return values;
}

class RandomReference : public ::testing::TestWithParam<std::uint64_t> {};

// One sequence of draws of every kind: each has PyTorch's values and uses up as many numbers.
TEST_P(RandomReference, EveryDrawHasPyTorchsValues) {
  const std::uint64_t seed = GetParam();
  Generator g(seed);
  const auto wanted = [&](const std::string& name) {
    return reference().at(name + "/" + std::to_string(seed));
  };
  const auto uniform = [&](const Shape& shape, DType dtype, double low, double high) {
    const Tensor t = empty(shape, {.dtype = dtype});
    uniform_(t, low, high, g);
    return t;
  };
  const auto normal = [&](const Shape& shape, DType dtype, double mean, double std) {
    const Tensor t = empty(shape, {.dtype = dtype});
    normal_(t, mean, std, g);
    return t;
  };
  EXPECT_SAME_BITS(uniform({37}, kF32, 0, 1), wanted("uniform_f32"));
  EXPECT_SAME_BITS(uniform({3, 11}, kF32, -0.3061862, 0.3061862), wanted("uniform_f32_range"));
  EXPECT_SAME_BITS(uniform({19}, kF64, -2, 5), wanted("uniform_f64"));
  EXPECT_SAME_BITS(normal({64}, kF32, 0, 1), wanted("normal_f32"));
  EXPECT_SAME_BITS(normal({5, 7}, kF32, 0.5, 0.02), wanted("normal_f32_tail"));
  // What goes through libm's double functions may differ in the last place between versions.
  EXPECT_CLOSE(normal({7}, kF32, 1, 2), wanted("normal_f32_short"), 1.2e-7, 0);
  EXPECT_CLOSE(normal({4}, kF32, 0, 1), wanted("normal_f32_next"), 1.2e-7, 0);
  EXPECT_CLOSE(normal({33}, kF64, 0, 1), wanted("normal_f64"), 1e-14, 1e-15);
  EXPECT_SAME_BITS(uniform({21}, kF16, -1, 1), wanted("uniform_f16"));
  EXPECT_SAME_BITS(uniform({21}, kBF16, -1, 1), wanted("uniform_bf16"));
  EXPECT_SAME_BITS(normal({21}, kF16, 0, 1), wanted("normal_f16"));
  EXPECT_SAME_BITS(normal({48}, kBF16, 0, 1), wanted("normal_bf16"));
  const Tensor coins = empty({40});
  bernoulli_(coins, 0.3, g);
  EXPECT_SAME_BITS(coins, wanted("bernoulli"));
  EXPECT_SAME_BITS(randint(-5, 100, {20}, g), wanted("randint_small"));
  EXPECT_SAME_BITS(randint(-(std::int64_t{1} << 40), std::int64_t{1} << 41, {20}, g),
                   wanted("randint_large"));
  EXPECT_SAME_BITS(randint(0, std::int64_t{1} << 28, {10}, g), wanted("randint_border"));
  for (const int n : {0, 1, 2, 10, 100})
    EXPECT_SAME_BITS(randperm(n, g), wanted("randperm_" + std::to_string(n)));
  EXPECT_SAME_BITS(uniform({3}, kF32, 0, 1), wanted("after"));
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomReference,
                         ::testing::Values(0, 42, (std::uint64_t{1} << 40) + 7));

std::pair<std::int64_t, std::int64_t> bit_sums(const Tensor& t) {
  std::int64_t sum = 0, weighted = 0;
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, t.data<float>() + i, sizeof bits);
    sum += bits;
    weighted += std::int64_t{bits % 65521} * ((i + 1) % 65521);
  }
  return {sum, weighted};
}

void expect_ends(const Tensor& actual, const Tensor& ends) {
  EXPECT_SAME_BITS(actual.slice(0, 0, 64).contiguous(), ends.slice(0, 0, 64).contiguous());
  EXPECT_SAME_BITS(actual.slice(0, -64, actual.numel()).contiguous(),
                   ends.slice(0, 64, 128).contiguous());
}

TEST(Random, LongDrawsHavePyTorchsBits) {
  Generator g(1);
  const Tensor uniform = empty({200003}), normal = empty({200003});
  uniform_(uniform, -0.125, 0.125, g);
  normal_(normal, 0, 1, g);
  for (const auto& [name, t] : {std::pair{"uniform", uniform}, std::pair{"normal", normal}}) {
    const std::string key = std::string("long_") + name;
    const auto* sums = reference().at(key + "/bits").data<std::int64_t>();
    EXPECT_EQ(bit_sums(t), std::pair(sums[0], sums[1])) << name;
    expect_ends(t, reference().at(key + "/ends"));
  }
  const Tensor permutation = randperm(60000, g);
  std::int64_t sum = 0, weighted = 0;
  for (std::int64_t i = 0; i < 60000; ++i) {
    sum += permutation.data<std::int64_t>()[i];
    weighted += permutation.data<std::int64_t>()[i] * (i + 1);
  }
  const auto* sums = reference().at("long_randperm/bits").data<std::int64_t>();
  EXPECT_EQ(sum, sums[0]);
  EXPECT_EQ(weighted, sums[1]);
  expect_ends(permutation, reference().at("long_randperm/ends"));
}

TEST(Random, NormalBlocksAreTheSameWithAndWithoutVectorInstructions) {
  Generator g(3);
  for (int block = 0; block < 5000; ++block) {
    float a[16], b[16];
    for (float& value : a) value = g.uniform_f32();
    if (block == 0) a[0] = a[8] = 0;             // log(1), angle 0
    if (block == 1) a[0] = a[8] = 1 - 0x1p-24F;  // the largest draw
    std::memcpy(b, a, sizeof a);
    box_muller_16(a, 0.25F, 1.5F);
    internal::box_muller_16_portable(b, 0.25F, 1.5F);
    ASSERT_EQ(std::memcmp(a, b, sizeof a), 0) << "block " << block;
    for (const float value : a) ASSERT_TRUE(std::isfinite(value));
  }
}

TEST(Random, NormalBlocksAreAccurate) {
  Generator g(4);
  for (int block = 0; block < 2000; ++block) {
    float a[16];
    double exact[16];
    for (int j = 0; j < 16; ++j) exact[j] = a[j] = g.uniform_f32();
    box_muller_16(a, 0, 1);
    box_muller_16(exact, 0, 1);
    for (int j = 0; j < 16; ++j) ASSERT_NEAR(a[j], exact[j], 4e-6) << "block " << block;
  }
}

TEST(Random, MomentsOfTheDistributions) {
  Generator g(5);
  const std::int64_t n = 1 << 18;
  const Tensor normal = randn({n}, g, {.dtype = kF64}), uniform = rand({n}, g, {.dtype = kF64});
  double mean = 0, square = 0, u = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    mean += normal.data<double>()[i];
    square += normal.data<double>()[i] * normal.data<double>()[i];
    u += uniform.data<double>()[i];
    ASSERT_GE(uniform.data<double>()[i], 0);
    ASSERT_LT(uniform.data<double>()[i], 1);
  }
  EXPECT_NEAR(mean / n, 0, 5.0 / 512);  // five standard errors
  EXPECT_NEAR(square / n, 1, 5 * std::sqrt(2.0) / 512);
  EXPECT_NEAR(u / n, 0.5, 5 * std::sqrt(1.0 / 12) / 512);
}

TEST(Random, LayoutDoesNotChangeTheValues) {
  Generator a(6), b(6);
  const Shape shape{2, 3, 4, 5};
  const Tensor plain = empty(shape), last = empty(shape, {.format = MemoryFormat::kChannelsLast});
  for (const auto draw : {uniform_, normal_}) {
    draw(plain, 0, 1, a);
    draw(last, 0, 1, b);
    EXPECT_SAME_BITS(last, plain);
  }
  const Tensor transposed = empty({20, 3}).t();
  const std::uint64_t before = transposed.version();
  uniform_(transposed, 0, 1, a);
  EXPECT_GT(transposed.version(), before);
}

TEST(Random, EmptyTensorsAndErrors) {
  Generator g(7);
  uniform_(empty({0, 3}), 0, 1, g);
  normal_(empty({0}), 0, 1, g);
  EXPECT_EQ(g.random(), Generator(7).random());  // nothing was drawn
  EXPECT_EQ(randint(0, 3, {0}, g).numel(), 0);
  EXPECT_THROW(uniform_(empty({2}), 1, 0, g), Error);
  EXPECT_THROW(normal_(empty({2}), 0, -1, g), Error);
  EXPECT_THROW(bernoulli_(empty({2}), 1.5, g), Error);
  EXPECT_THROW(uniform_(empty({2}, {.dtype = kI64}), 0, 1, g), Error);
  EXPECT_THROW(uniform_(Tensor(), 0, 1, g), Error);
  EXPECT_THROW(randint(3, 3, {1}, g), Error);
  EXPECT_THROW(randperm(-1, g), Error);
}

}  // namespace
}  // namespace lockstep
