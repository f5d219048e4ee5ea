// Compares gradients with finite differences.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/autograd/variable.h"

namespace lockstep {

struct GradcheckOptions {
  double eps = 1e-6;
  double atol = 1e-6;
  double rtol = 1e-4;
};

// f is a function of f64 leaves that require gradients, with a result of any shape. For every
// element of every input, (f(x + eps) - f(x - eps)) / (2 eps), weighted by a fixed pseudo-random
// dy, is compared with what backward gives. Returns an empty string where all agree, else the first
// difference in words. Throws Error if an input is not f64.
std::string gradcheck(const std::function<Variable(const std::vector<Variable>&)>& f,
                      const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});

}  // namespace lockstep
