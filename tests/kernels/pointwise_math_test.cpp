// Accuracy and special values of the f32 functions, for every instruction set that the machine has.
#include "lockstep/kernels/pointwise_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "lockstep/kernels/elementwise.h"

namespace lockstep::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Function {
  const char* name;
  PointwiseLoop loop;
  double (*exact)(double);
  double ulps;
};

// |a - b| in units of b's last place (b rounded to f32); denormal results count the smallest step.
double ulp_error(float actual, double exact) {
  const auto rounded = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(actual) ? 0 : 1e9;
  if (std::isinf(rounded) || std::isinf(actual)) return actual == rounded ? 0 : 1e9;
  const float magnitude = std::max(std::abs(rounded), std::numeric_limits<float>::min());
  const double ulp = static_cast<double>(std::nextafter(magnitude, kInf)) - magnitude;
  return std::abs(static_cast<double>(actual) - exact) / ulp;
}

template <Isa isa>
void check_all(std::uint32_t step) {
  using namespace pointwise;
  const Function functions[] = {
      {"exp", &unary_f32<isa, Exp>, [](double x) { return std::exp(x); }, 2},
      {"log", &unary_f32<isa, Log>, [](double x) { return std::log(x); }, 2},
      {"tanh", &unary_f32<isa, Tanh>, [](double x) { return std::tanh(x); }, 3},
      {"erf", &unary_f32<isa, Erf>, [](double x) { return std::erf(x); }, 3},
      {"sigmoid", &unary_f32<isa, Sigmoid>, [](double x) { return 1 / (1 + std::exp(-x)); }, 4},
      {"sqrt", &unary_f32<isa, Sqrt>, [](double x) { return std::sqrt(x); }, 0.51},
  };
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += step)
    x.push_back(bits_float(static_cast<std::int32_t>(static_cast<std::uint32_t>(bits))));
  for (int i = -4000; i <= 4000; ++i) x.push_back(static_cast<float>(i) * 0.026f);
  x.insert(x.end(), {0.f, -0.f, kInf, -kInf, std::nanf(""), 88.72283f, 88.73f, -87.4f, -103.9f,
                     -104.f, 1e-45f, 1.17549435e-38f, 1.f, 0.99999994f, 1.0000001f});
  std::vector<float> y(x.size());
  for (const Function& f : functions) {
    const void* in[] = {x.data()};
    const char no_state = 0;
    f.loop({&no_state, y.data(), in, 0, static_cast<std::int64_t>(x.size())});
    double worst = 0;
    float at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      // Below the smallest normal result sigmoid's own formula ends at 0 by way of 1/inf.
      if (f.exact(-200) < 1e-80 && std::string(f.name) == "sigmoid" && x[i] < -87.f) continue;
      const double error = ulp_error(y[i], f.exact(static_cast<double>(x[i])));
      if (error > worst) worst = error, at = x[i];
    }
    EXPECT_LE(worst, f.ulps) << f.name << " at " << at;
    ::testing::Test::RecordProperty(f.name, std::to_string(worst));
  }
}

TEST(PointwiseMath, BaselineAccuracy) { check_all<Isa::kBaseline>(40009); }
#if defined(__x86_64__)
TEST(PointwiseMath, Avx2Accuracy) {
  if (best_isa() < Isa::kAvx2) GTEST_SKIP() << "the processor has no AVX2";
  check_all<Isa::kAvx2>(40009);
}
TEST(PointwiseMath, Avx512Accuracy) {
  if (best_isa() < Isa::kAvx512) GTEST_SKIP() << "the processor has no AVX-512";
  check_all<Isa::kAvx512>(40009);
}
#endif

}  // namespace
}  // namespace lockstep::kernels
