// The fused optimizer steps on every device beside the CPU's.
#include <gtest/gtest.h>

#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/kernels/adam_step.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/lookahead_step.h"
#include "lockstep/kernels/sgd_step.h"
#include "support/device.h"
#include "support/expect_close.h"
#include "support/message.h"

namespace lockstep {
namespace {

using namespace kernels;
using testing::message_of;

class OptimizerSteps : public testing::DeviceTest {
 protected:
  // Sizes around a vector, a block and a chunk; more tensors than one launch takes.
  static std::vector<Shape> shapes() {
    std::vector<Shape> shapes = {{0}, {1}, {3}, {4}, {5}, {1023}, {1024}, {1025}, {7, 331}, {}};
    for (int i = 0; i < 30; ++i) shapes.push_back({i + 1});
    return shapes;
  }
  // On the host and, the same numbers, on the device.
  std::pair<Tensor, Tensor> both(const Shape& shape, DType dtype, bool positive = false) {
    Tensor x = cast(randn(shape, generator_), dtype);
    if (positive) x = cast(rand(shape, generator_), dtype);
    return {x, device().is_cpu() ? x.clone() : to_device(x)};
  }
  void expect_same(const Tensor& host, const Tensor& there, DType dtype) {
    const double tolerance = dtype == kF64   ? 1e-13
                             : dtype == kF32 ? 1e-6
                             : dtype == kF16 ? 1e-3
                                             : 8e-3;
    EXPECT_CLOSE(cast(to_host(there), kF64), cast(host, kF64), tolerance, tolerance);
  }
  static constexpr DType kDTypes[] = {kF32, kF64, kF16, kBF16};
  Generator generator_{3};
};

TEST_P(OptimizerSteps, Sgd) {
  for (const DType dtype : kDTypes)
    for (const SgdConfig& config :
         {SgdConfig{.lr = 0.1}, SgdConfig{.lr = 0.1, .momentum = 0.9, .nesterov = true},
          SgdConfig{.lr = 0.1,
          .momentum = 0.9,
          .dampening = 0.2,
          .weight_decay = 0.01,
          .maximize = true,
          .grad_scale = 0.5}}) {
      std::vector<SgdSegment> host, there;
      for (const Shape& shape : shapes()) {
        const auto p = both(shape, dtype), g = both(shape, dtype);
        const auto v = both(shape, dtype == kF64 ? kF64 : kF32);
        const bool first = shape.rank() == 2;
        host.push_back({p.first, g.first, config.momentum == 0 ? Tensor() : v.first, first});
        there.push_back({p.second, g.second, config.momentum == 0 ? Tensor() : v.second, first});
      }
      const auto version = there[3].param.version();
      sgd_step(host, config);
      sgd_step(there, config);
      EXPECT_GT(there[3].param.version(), version);
      for (std::size_t i = 0; i < host.size(); ++i) {
        expect_same(host[i].param, there[i].param, dtype);
        if (config.momentum != 0)
          expect_same(host[i].momentum, there[i].momentum, dtype == kF64 ? kF64 : kF32);
      }
    }
}

TEST_P(OptimizerSteps, Adam) {
  for (const DType dtype : kDTypes)
    for (const AdamConfig& config :
         {AdamConfig{.lr = 0.01}, AdamConfig{.lr = 0.01, .weight_decay = 0.1, .decoupled = true},
          AdamConfig{.lr = 0.01, .weight_decay = 0.1, .amsgrad = true}}) {
      const DType state = dtype == kF64 ? kF64 : kF32;
      std::vector<AdamSegment> host, there;
      for (const Shape& shape : shapes()) {
        const auto p = both(shape, dtype), g = both(shape, dtype), m = both(shape, state);
        const auto v = both(shape, state, true), most = both(shape, state, true);
        host.push_back(
            {p.first, g.first, m.first, v.first, config.amsgrad ? most.first : Tensor(), 3});
        there.push_back(
            {p.second, g.second, m.second, v.second, config.amsgrad ? most.second : Tensor(), 3});
      }
      adam_step(host, config);
      adam_step(there, config);
      for (std::size_t i = 0; i < host.size(); ++i) {
        expect_same(host[i].param, there[i].param, dtype);
        expect_same(host[i].exp_avg, there[i].exp_avg, state);
        expect_same(host[i].exp_avg_sq, there[i].exp_avg_sq, state);
        if (config.amsgrad) expect_same(host[i].max_exp_avg_sq, there[i].max_exp_avg_sq, state);
      }
    }
}

TEST_P(OptimizerSteps, Lookahead) {
  for (const DType dtype : kDTypes) {
    const DType state = dtype == kF64 ? kF64 : kF32;
    std::vector<LookaheadSegment> host, there;
    for (const Shape& shape : shapes()) {
      const auto fast = both(shape, dtype), slow = both(shape, state);
      host.push_back({fast.first, slow.first});
      there.push_back({fast.second, slow.second});
    }
    for (const auto& segments : {host, there}) lookahead_step(segments, 0.3);
    for (std::size_t i = 0; i < host.size(); ++i) {
      expect_same(host[i].fast, there[i].fast, dtype);
      expect_same(host[i].slow, there[i].slow, state);
    }
    lookahead_start(there);
    for (const LookaheadSegment& s : there)
      EXPECT_SAME_BITS(to_host(s.slow), cast(to_host(s.fast), state));
  }
}

// A parameter that starts in the middle of a buffer cannot be read 16 bytes at a time.
TEST_P(OptimizerSteps, AnyAddress) {
  const auto buffer = both({1001}, kF32), gradients = both({1002}, kF32);
  for (const std::int64_t start : {1, 2, 3}) {
    const SgdSegment host{
        buffer.first.slice(0, start, 990), gradients.first.slice(0, 1, 991 - start), {}, false};
    const SgdSegment there{
        buffer.second.slice(0, start, 990), gradients.second.slice(0, 1, 991 - start), {}, false};
    sgd_step({&host, 1}, {.lr = 0.1});
    sgd_step({&there, 1}, {.lr = 0.1});
  }
  expect_same(buffer.first, buffer.second, kF32);
}

TEST_P(OptimizerSteps, TensorsOfTwoDevicesAreRefused) {
  if (device().is_cpu()) GTEST_SKIP() << "there is only one CPU";
  const auto p = both({4}, kF32), g = both({4}, kF32);
  const SgdSegment mixed{p.second, g.first, {}, false};
  EXPECT_EQ(message_of<Error>([&] {
              sgd_step({&mixed, 1}, {.lr = 0.1});
            }),
            "sgd_step: gradient is on cpu but the parameter on cuda:0");
  const SgdSegment two[] = {{p.second, g.second, {}, false}, {p.first, g.first, {}, false}};
  EXPECT_EQ(message_of<Error>([&] { sgd_step(two, {.lr = 0.1}); }),
            "sgd_step: a parameter is on cpu but the first one is on cuda:0");
}

LOCKSTEP_ON_ALL_DEVICES(OptimizerSteps);

}  // namespace
}  // namespace lockstep
