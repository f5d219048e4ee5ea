// NaN as it is shown to people: a sign tells them nothing, and x86 sets it on every new NaN.
#pragma once

#include <cmath>
#include <limits>

namespace lockstep::train {

// The number itself; a NaN without its sign, which prints as "nan".
inline double plain_nan(double x) {
  return std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x;
}

}  // namespace lockstep::train
