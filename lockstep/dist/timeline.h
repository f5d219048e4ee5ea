// When each bucket was ready, launched, started and finished, and how much of it backward did not
// hide.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/core/stream.h"

namespace lockstep::dist {

// Nanoseconds of std::chrono::steady_clock, the same clock in all processes of a host; 0: not yet.
struct BucketTiming {
  int bucket = 0;
  std::uint64_t bytes = 0;
  std::int64_t ready = 0;   // the last of its gradients arrived
  std::int64_t launch = 0;  // handed to the process group (after all earlier buckets)
  std::int64_t start = 0;   // the communication thread began with it
  std::int64_t end = 0;     // reduced on this rank
};

struct StepTiming {
  std::int64_t step = 0;
  std::int64_t first_gradient = 0;
  std::int64_t last_gradient = 0;
  std::int64_t finished = 0;  // all buckets reduced, gradients ready to use
  std::vector<BucketTiming> buckets;
  // Of parameters on a CUDA device: where its stream began and ended to wait for the buckets. Times
  // of communication on the device are not known to the host's clock.
  struct DeviceWait {
    Event begin, end;
  };
  std::optional<DeviceWait> device_wait;

  // Communication after the last gradient was there: the part that backward did not hide. On a CUDA
  // device by its clock, and 0 as long as it is not over.
  double exposed_ms() const;
  // Time in which at least one bucket was on its way.
  double communication_ms() const;
  // Share of the communication that lay under backward, 0 to 1; 1 where there was none.
  double overlap() const;
};

std::int64_t steady_now_ns();

}  // namespace lockstep::dist
