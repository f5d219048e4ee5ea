// Whether a metric is to fall or to rise.
#pragma once

namespace lockstep::optim {

enum class MetricMode { kMin, kMax };

}  // namespace lockstep::optim
