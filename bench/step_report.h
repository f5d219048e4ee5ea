// Results of bench_step: as text and as JSON.
#pragma once

#include <string>

#include "bench/step_measure.h"

namespace lockstep::bench {

std::string step_text(const StepRun& run);

// Schema "lockstep.bench_step", version 1. Keys are only ever added.
std::string step_json(const StepRun& run);

}  // namespace lockstep::bench
