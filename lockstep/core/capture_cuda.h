// What the rest of core must know of captures in progress. Internal: includes CUDA's headers.
#pragma once

#include <cuda_runtime.h>

namespace lockstep::cuda {

// Whether what is enqueued on the stream becomes a part of a graph rather than being carried out.
bool is_captured(cudaStream_t stream);

// Whether this thread is inside Graph::capture().
bool thread_captures();
void set_thread_captures(bool captures);

// Throws Error saying that `op` is not possible inside Graph::capture(), where the thread is.
void refuse_in_capture(const char* op);

// For one scope: calls that have nothing to do with the captured streams, as those for memory, are
// allowed to the thread though it captures.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace lockstep::cuda
