#include "lockstep/kernels/simd_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace lockstep::kernels {
namespace {

// Runs the body on every instruction set that this machine has, each time followed by the check.
template <class Body, class Check>
void on_every_isa(const Body& body, const Check& check) {
  {
    SCOPED_TRACE("baseline");
    body();
    check();
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    SCOPED_TRACE("AVX2");
    run_avx2(body);
    check();
  }
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq")) {
    SCOPED_TRACE("AVX-512");
    run_avx512(body);
    check();
  }
}

std::uint16_t bits_of(Half h) { return Eigen::numext::bit_cast<std::uint16_t>(h); }
std::uint16_t bits_of(BFloat16 b) { return Eigen::numext::bit_cast<std::uint16_t>(b); }

template <class T>
void check_widening() {
  std::vector<T> in(65536);
  for (std::uint32_t b = 0; b < 65536; ++b)
    in[b] = Eigen::numext::bit_cast<T>(static_cast<std::uint16_t>(b));
  std::vector<float> out(65536);
  on_every_isa(
      [&]() LOCKSTEP_SIMD {
        for (std::size_t i = 0; i < in.size(); i += 16) store(&out[i], load(&in[i]));
      },
      [&] {
        for (std::size_t b = 0; b < in.size(); ++b) {
          const auto wanted = static_cast<float>(in[b]);
          if (std::isnan(wanted))
            ASSERT_TRUE(std::isnan(out[b])) << b;
          else
            ASSERT_EQ(std::bit_cast<std::uint32_t>(out[b]), std::bit_cast<std::uint32_t>(wanted))
                << b;
        }
      });
}

template <class T>
void check_narrowing() {
  std::vector<float> in;
  // Every exponent and sign with mantissas around ties, and all of the special values.
  for (std::uint32_t head = 0; head < 512; ++head)
    for (std::uint32_t mantissa :
         {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u, 0x7fffu, 0x8000u, 0x8001u, 0x17fffu,
          0x18000u, 0x3ff000u, 0x400000u, 0x7fefffu, 0x7fffffu})
      in.push_back(std::bit_cast<float>((head << 23) | mantissa));
  std::vector<T> out(in.size());
  on_every_isa(
      [&]() LOCKSTEP_SIMD {
        for (std::size_t i = 0; i < in.size(); i += 16) store(&out[i], load(&in[i]));
      },
      [&] {
        for (std::size_t i = 0; i < in.size(); ++i) {
          const T wanted(in[i]);
          if (std::isnan(in[i]))
            ASSERT_TRUE(std::isnan(static_cast<float>(out[i]))) << in[i];
          else
            ASSERT_EQ(bits_of(out[i]), bits_of(wanted)) << in[i];
        }
      });
}

TEST(Simd, HalfConversionsAreExact) {
  check_widening<Half>();
  check_narrowing<Half>();
}
TEST(Simd, BFloat16ConversionsAreExact) {
  check_widening<BFloat16>();
  check_narrowing<BFloat16>();
}

TEST(Simd, ExpIsWithinTwoUnitsInTheLastPlace) {
  std::vector<float> in;
  for (double x = -87.3; x < 88.7; x += 0.00173) in.push_back(static_cast<float>(x));
  in.resize(in.size() / 16 * 16);
  std::vector<float> out(in.size());
  on_every_isa(
      [&]() LOCKSTEP_SIMD {
        for (std::size_t i = 0; i < in.size(); i += 16) store(&out[i], exp_lanes(load(&in[i])));
      },
      [&] {
        for (std::size_t i = 0; i < in.size(); ++i) {
          const double wanted = std::exp(static_cast<double>(in[i]));
          const double ulp =
              std::nextafter(static_cast<float>(wanted), 1e38f) - static_cast<float>(wanted);
          ASSERT_LE(std::abs(out[i] - wanted), 2 * std::abs(ulp)) << in[i];
        }
      });
}

TEST(Simd, ExpOfSpecialValues) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float in[16] = {-kInf,
                        -1e30f,
                        -104,
                        -100,
                        -90,
                        -0.0f,
                        0,
                        88.7f,
                        88.8f,
                        100,
                        1e30f,
                        kInf,
                        std::numeric_limits<float>::quiet_NaN()};
  float out[16];
  on_every_isa([&]() LOCKSTEP_SIMD { store(out, exp_lanes(load(in))); },
               [&] {
                 EXPECT_EQ(out[0], 0);
                 EXPECT_EQ(out[1], 0);
                 EXPECT_EQ(out[2], 0);
                 EXPECT_NEAR(out[3] / std::exp(-100.0), 1, 0.02);  // subnormal: 3.8e-44 has 5 bits
                 EXPECT_NEAR(out[4] / std::exp(-90.0), 1, 1e-4);
                 EXPECT_EQ(out[5], 1);
                 EXPECT_EQ(out[6], 1);
                 EXPECT_TRUE(std::isfinite(out[7]));
                 for (int i : {8, 9, 10, 11}) EXPECT_EQ(out[i], kInf);
                 EXPECT_TRUE(std::isnan(out[12]));
               });
}

TEST(Simd, RowSumsCountEveryElementOnce) {
  for (std::int64_t n : {0, 1, 15, 16, 17, 1023, 1024, 1025, 5000}) {
    std::vector<float> row(static_cast<std::size_t>(n + 1), 1);
    row.back() = 1e6f;  // one past the end
    float sum = -1;
    on_every_isa(
        [&]() LOCKSTEP_SIMD {
          sum = sum_row<float>(n, [&](std::int64_t i, std::int64_t k)
                                      LOCKSTEP_SIMD { return load_at(row.data(), i, k); });
        },
        [&] { EXPECT_EQ(sum, static_cast<float>(n)); });
  }
}

}  // namespace
}  // namespace lockstep::kernels
