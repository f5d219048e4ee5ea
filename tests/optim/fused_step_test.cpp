// The fused kernels: the same bits with every instruction set and any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "lockstep/core/threads.h"
#include "lockstep/kernels/adam_step.h"
#include "lockstep/kernels/clip_grad.h"
#include "lockstep/kernels/isa.h"
#include "lockstep/kernels/lookahead_step.h"
#include "lockstep/kernels/sgd_step.h"
#include "optim/toy_params.h"
#include "support/expect_close.h"

namespace lockstep::kernels {
namespace {

using lockstep::testing::wave;

// What one run of a kernel leaves: every tensor that it may have written.
using KernelRun = std::function<std::vector<Tensor>(Isa isa)>;

void expect_same_bits_everywhere(const KernelRun& run) {
  set_num_threads(1);
  const std::vector<Tensor> expected = run(Isa::kBaseline);
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    for (const Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
      if (isa > best_isa()) continue;
      const std::vector<Tensor> actual = run(isa);
      ASSERT_EQ(actual.size(), expected.size());
      for (std::size_t i = 0; i < actual.size(); ++i)
        EXPECT_SAME_BITS(actual[i], expected[i])
            << "threads " << threads << " isa " << static_cast<int>(isa) << " tensor " << i;
    }
  }
  set_num_threads(0);
}

class FusedStep : public ::testing::TestWithParam<DType> {
 protected:
  DType dtype() const { return GetParam(); }
  DType state() const { return dtype() == kF64 ? kF64 : kF32; }
  // Several chunks and odd ends.
  const std::vector<Shape> shapes_{{70'001}, {17}, {}, {3, 0}, {129, 257}, {16'384}};
};

TEST_P(FusedStep, Sgd) {
  for (const bool nesterov : {false, true})
    expect_same_bits_everywhere([&](Isa isa) {
      std::vector<Tensor> written;
      std::vector<SgdSegment> segments;
      for (std::size_t i = 0; i < shapes_.size(); ++i) {
        segments.push_back({wave(shapes_[i], 1, dtype()), wave(shapes_[i], 2, dtype()),
                            wave(shapes_[i], 3, state()), i % 2 == 0});
        written.push_back(segments.back().param);
        written.push_back(segments.back().momentum);
      }
      sgd_step(segments, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = nesterov},
               isa);
      return written;
    });
}

TEST_P(FusedStep, Adam) {
  for (const bool amsgrad : {false, true})
    expect_same_bits_everywhere([&](Isa isa) {
      std::vector<Tensor> written;
      std::vector<AdamSegment> segments;
      for (const Shape& shape : shapes_) {
        Tensor square = wave(shape, 4, state());
        visit_floating(state(), "test", [&]<class S>() {
          for (std::int64_t i = 0; i < square.numel(); ++i)
            square.data<S>()[i] *= square.data<S>()[i];
        });
        segments.push_back({wave(shape, 1, dtype()), wave(shape, 2, dtype()),
                            wave(shape, 3, state()), square, square.clone(), 3});
        for (const Tensor& t : {segments.back().param, segments.back().exp_avg,
                                segments.back().exp_avg_sq, segments.back().max_exp_avg_sq})
          written.push_back(t);
      }
      adam_step(segments, {.lr = 0.1, .weight_decay = 0.01, .amsgrad = amsgrad}, isa);
      return written;
    });
}

TEST_P(FusedStep, Lookahead) {
  expect_same_bits_everywhere([&](Isa isa) {
    std::vector<Tensor> written;
    std::vector<LookaheadSegment> segments;
    for (const Shape& shape : shapes_) {
      segments.push_back({wave(shape, 1, dtype()), wave(shape, 2, state())});
      written.push_back(segments.back().fast);
      written.push_back(segments.back().slow);
    }
    lookahead_step(segments, 0.3, isa);
    return written;
  });
}

TEST_P(FusedStep, ClipGrad) {
  expect_same_bits_everywhere([&](Isa isa) {
    std::vector<Tensor> grads;
    for (const Shape& shape : shapes_) grads.push_back(wave(shape, 1, dtype()));
    std::vector<Tensor> results;
    for (const double p : {2.0, 1.0, std::numeric_limits<double>::infinity()})
      results.push_back(full({}, grad_norm(grads, p, isa), {.dtype = kF64}));
    scale_in_place(grads, 0.3, isa);
    clamp_in_place(grads, 0.25, isa);
    results.insert(results.end(), grads.begin(), grads.end());
    return results;
  });
}

INSTANTIATE_TEST_SUITE_P(DTypes, FusedStep, ::testing::Values(kF32, kF64, kF16, kBF16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

// Every half and bfloat16 goes through a step of rate 0 unchanged, NaN as NaN.
template <class T>
void all_values_pass() {
  Tensor p = empty({65'536}, {.dtype = kDTypeOf<T>});
  auto* bits = static_cast<std::uint16_t*>(p.data());
  for (std::int64_t i = 0; i < 65'536; ++i) bits[i] = static_cast<std::uint16_t>(i);
  const Tensor grad = zeros_like(p);
  for (const Isa isa : {Isa::kBaseline, best_isa()}) {
    const SgdSegment segment{p, grad, {}, false};
    sgd_step({&segment, 1}, {.lr = 0}, isa);
    for (std::int64_t i = 0; i < 65'536; ++i) {
      const float before =
          static_cast<float>(Eigen::numext::bit_cast<T>(static_cast<std::uint16_t>(i)));
      const bool kept =
          std::isnan(before) ? std::isnan(static_cast<float>(p.data<T>()[i])) : bits[i] == i;
      ASSERT_TRUE(kept) << i;
    }
  }
}
TEST(FusedStepHalves, AllFloat16) { all_values_pass<Half>(); }
TEST(FusedStepHalves, AllBFloat16) { all_values_pass<BFloat16>(); }

// Conversion of f32 to half rounds as Eigen's, halfway cases and overflow included.
template <class T>
void rounds_to_nearest_even() {
  std::vector<float> values;
  for (int exponent = -28; exponent < 18; ++exponent)
    for (int i = 0; i < 4096; ++i)
      values.push_back(std::ldexp(1.0f + static_cast<float>(i) / 4096, exponent));
  const auto n = static_cast<std::int64_t>(values.size());
  const Tensor slow = tensor(values), fast = zeros({n}, {.dtype = kDTypeOf<T>});
  const LookaheadSegment segment{fast, slow};
  lookahead_step({&segment, 1}, 0);
  for (std::int64_t i = 0; i < n; ++i)
    ASSERT_EQ(static_cast<float>(fast.data<T>()[i]), static_cast<float>(static_cast<T>(values[i])))
        << values[i];
}
TEST(FusedStepHalves, RoundsToFloat16) { rounds_to_nearest_even<Half>(); }
TEST(FusedStepHalves, RoundsToBFloat16) { rounds_to_nearest_even<BFloat16>(); }

}  // namespace
}  // namespace lockstep::kernels
