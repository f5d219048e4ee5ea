// What the tests of the virtual GPU have in common: memory with an owner, launches, faults.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "vgpu/report.h"

namespace vgpu_tests {

#define EXPECT_CUDA(call) EXPECT_EQ(call, cudaSuccess)

template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t n) : n_(n) {
    EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&data_), n * sizeof(T)));
  }
  explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) {
    EXPECT_CUDA(cudaMemcpy(data_, values.data(), n_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* data() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> values(n_);
    EXPECT_CUDA(cudaMemcpy(values.data(), data_, n_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  std::size_t n_;
  T* data_ = nullptr;
};

template <class... P, class... A>
cudaError_t launch(cudaStream_t stream, dim3 grid, dim3 block, std::size_t shared,
                   void (*kernel)(P...), A... arguments) {
  cudaLaunchConfig_t config;
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

// A fault ends the use of its device; every test begins with none.
class VirtualGpu : public ::testing::Test {
 protected:
  void SetUp() override { vgpu::forget_faults(); }
  void TearDown() override { vgpu::forget_faults(); }

  // Waits; the text of the fault that the work ended with, "" if it went well.
  static std::string fault() {
    const cudaError_t error = cudaDeviceSynchronize();
    const std::string text = vgpu::last_fault(0);
    EXPECT_EQ(error == cudaSuccess, text.empty()) << cudaGetErrorName(error) << ", " << text;
    return text;
  }
  static bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
};

}  // namespace vgpu_tests
