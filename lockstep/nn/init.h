// Initial values for parameters, with PyTorch's names, formulas and (for one seed) numbers.
#pragma once

#include "lockstep/autograd/variable.h"
#include "lockstep/core/generator.h"

namespace lockstep::nn::init {

enum class FanMode { kFanIn, kFanOut };
enum class Nonlinearity { kLinear, kConv2d, kSigmoid, kTanh, kReLU, kLeakyReLU, kSELU };

// The factor that keeps the variance of activations: 1 (linear, conv, sigmoid), 5/3 (tanh),
// sqrt(2) (relu), sqrt(2 / (1 + slope^2)) (leaky_relu; the slope is `param`), 3/4 (selu).
double calculate_gain(Nonlinearity nonlinearity, double param = 0.01);

struct Fans {
  std::int64_t in = 0;
  std::int64_t out = 0;
};
// Of a weight (out, in, k...): in = in * prod(k), out = out * prod(k). Errors: fewer than 2 axes.
Fans calculate_fans(const Shape& weight);

// In place, outside any graph; draws from `generator`. A weight without elements draws nothing.

void uniform_(const Variable& weight, double from = 0, double to = 1,
              Generator& generator = default_generator());
void normal_(const Variable& weight, double mean = 0, double std = 1,
             Generator& generator = default_generator());
void constant_(const Variable& weight, double value);
void zeros_(const Variable& weight);
void ones_(const Variable& weight);

// U(-b, b) with b = gain(nonlinearity, a) * sqrt(3 / fan), and N(0, gain^2 / fan).
void kaiming_uniform_(const Variable& weight, double a = 0, FanMode mode = FanMode::kFanIn,
                      Nonlinearity nonlinearity = Nonlinearity::kLeakyReLU,
                      Generator& generator = default_generator());
void kaiming_normal_(const Variable& weight, double a = 0, FanMode mode = FanMode::kFanIn,
                     Nonlinearity nonlinearity = Nonlinearity::kLeakyReLU,
                     Generator& generator = default_generator());
// U(-b, b) with b = gain * sqrt(6 / (in + out)), and N(0, gain^2 * 2 / (in + out)).
void xavier_uniform_(const Variable& weight, double gain = 1,
                     Generator& generator = default_generator());
void xavier_normal_(const Variable& weight, double gain = 1,
                    Generator& generator = default_generator());

// What Linear and Conv2d start with: kaiming_uniform_(weight, sqrt(5)), then the bias (if defined)
// from U(-1/sqrt(in), 1/sqrt(in)).
void default_weight_and_bias_(const Variable& weight, const Variable& bias,
                              Generator& generator = default_generator());

}  // namespace lockstep::nn::init
