// What a failed rank says, so that the cause is not buried under its consequences on other ranks.
#pragma once

#include <exception>

#include "lockstep/dist/environment.h"

namespace lockstep::apps {

// Prints "lockstep-train: rank R: reason" on stderr, in one line. Ranks that fail alike, or because
// another did, wait a moment first: a launcher ends them as soon as it sees the first one go, and
// then they go without a word. At most 3 s.
void report_failure(const dist::Environment& environment, const std::exception& failure);

}  // namespace lockstep::apps
