// The gradient of 3.25 x² and the end of the process, as any small program has them.
#include <cstdio>

#include "lockstep/autograd/ops/arithmetic.h"
#include "lockstep/autograd/ops/sum.h"

int main() {
  namespace ls = lockstep;
  ls::Variable x(ls::tensor({1.f, 2.f}), true);
  const ls::Variable y = ls::mul(ls::mul(x, x), 3.25);
  ls::sum(y).backward();
  const float* gradient = x.grad().data<float>();
  std::printf("%g %g\n", static_cast<double>(gradient[0]), static_cast<double>(gradient[1]));
}
