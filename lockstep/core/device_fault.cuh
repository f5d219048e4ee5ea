// How a kernel reports a fault in its data. Internal: device code.
#pragma once

#include <cuda_runtime.h>

#include "lockstep/core/device_fault.h"

namespace lockstep::cuda {

// `text` is a string of the host that lives as long as the process; it is not read here.
__device__ __forceinline__ void report_fault(DeviceFault* fault, const char* text, long long a,
                                             long long b, long long c, long long d, long long e) {
  if (atomicCAS(&fault->state, 0u, 1u) != 0u) return;
  fault->text = text;
  fault->values[0] = a;
  fault->values[1] = b;
  fault->values[2] = c;
  fault->values[3] = d;
  fault->values[4] = e;
  __threadfence_system();
  atomicExch(&fault->state, 2u);
}

}  // namespace lockstep::cuda
