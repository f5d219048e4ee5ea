// Values of the half types: arithmetic and conversions of Half and BFloat16.
#pragma once

#include <Eigen/Core>

#include "lockstep/core/dtype.h"
