#include "lockstep/nn/init.h"

#include <cmath>

#include "lockstep/core/check.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/core/random.h"

namespace lockstep::nn::init {
namespace {

// gain / sqrt(fan), in PyTorch's order of operations: the last bit decides the weights' bits.
double kaiming_std(const Variable& weight, double a, FanMode mode, Nonlinearity nonlinearity) {
  const Fans fans = calculate_fans(weight.shape());
  const auto fan = static_cast<double>(mode == FanMode::kFanIn ? fans.in : fans.out);
  return calculate_gain(nonlinearity, a) / std::sqrt(fan);
}

double xavier_std(const Variable& weight, double gain) {
  const Fans fans = calculate_fans(weight.shape());
  return gain * std::sqrt(2.0 / static_cast<double>(fans.in + fans.out));
}

}  // namespace

double calculate_gain(Nonlinearity nonlinearity, double param) {
  switch (nonlinearity) {
    case Nonlinearity::kTanh:
      return 5.0 / 3.0;
    case Nonlinearity::kReLU:
      return std::sqrt(2.0);
    case Nonlinearity::kLeakyReLU:
      return std::sqrt(2.0 / (1 + param * param));
    case Nonlinearity::kSELU:
      return 0.75;
    case Nonlinearity::kLinear:
    case Nonlinearity::kConv2d:
    case Nonlinearity::kSigmoid:
      break;
  }
  return 1;
}

Fans calculate_fans(const Shape& weight) {
  LOCKSTEP_CHECK(weight.rank() >= 2, "init: fans need a weight of at least 2 axes, got shape {}",
                 weight);
  std::int64_t receptive_field = 1;
  for (int axis = 2; axis < weight.rank(); ++axis) receptive_field *= weight[axis];
  return {.in = weight[1] * receptive_field, .out = weight[0] * receptive_field};
}

void uniform_(const Variable& weight, double from, double to, Generator& generator) {
  lockstep::uniform_(weight.data(), from, to, generator);
}

void normal_(const Variable& weight, double mean, double std, Generator& generator) {
  lockstep::normal_(weight.data(), mean, std, generator);
}

void constant_(const Variable& weight, double value) {
  copy_elements(
      weight.data(),
      full(Shape{}, value, {weight.dtype(), weight.data().device()}).expand(weight.shape()));
}

void zeros_(const Variable& weight) { zero_(weight.data()); }
void ones_(const Variable& weight) { constant_(weight, 1); }

void kaiming_uniform_(const Variable& weight, double a, FanMode mode, Nonlinearity nonlinearity,
                      Generator& generator) {
  if (weight.numel() == 0) return;
  const double bound = std::sqrt(3.0) * kaiming_std(weight, a, mode, nonlinearity);
  uniform_(weight, -bound, bound, generator);
}

void kaiming_normal_(const Variable& weight, double a, FanMode mode, Nonlinearity nonlinearity,
                     Generator& generator) {
  if (weight.numel() == 0) return;
  normal_(weight, 0, kaiming_std(weight, a, mode, nonlinearity), generator);
}

void xavier_uniform_(const Variable& weight, double gain, Generator& generator) {
  if (weight.numel() == 0) return;
  const double bound = std::sqrt(3.0) * xavier_std(weight, gain);
  uniform_(weight, -bound, bound, generator);
}

void xavier_normal_(const Variable& weight, double gain, Generator& generator) {
  if (weight.numel() == 0) return;
  normal_(weight, 0, xavier_std(weight, gain), generator);
}

void default_weight_and_bias_(const Variable& weight, const Variable& bias, Generator& generator) {
  kaiming_uniform_(weight, std::sqrt(5.0), FanMode::kFanIn, Nonlinearity::kLeakyReLU, generator);
  if (!bias.defined()) return;
  const std::int64_t fan_in = calculate_fans(weight.shape()).in;
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  uniform_(bias, -bound, bound, generator);
}

}  // namespace lockstep::nn::init
