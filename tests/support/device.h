// Tests that run on every device there is: the same body for the CPU and for CUDA.
//
//   class Softmax : public testing::DeviceTest {};
//   TEST_P(Softmax, …) { Tensor x = to_device(…); … EXPECT_CLOSE(to_host(y), expected, …); }
//   LOCKSTEP_ON_ALL_DEVICES(Softmax);
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "lockstep/core/device.h"
#include "lockstep/core/device_memory.h"
#include "lockstep/core/tensor.h"

namespace lockstep::testing {

class DeviceTest : public ::testing::TestWithParam<DeviceType> {
 protected:
  void SetUp() override {
    if (GetParam() == DeviceType::kCuda && cuda_device_count() == 0)
      GTEST_SKIP() << "no CUDA device, real or virtual: this build or machine has none";
    // Each tensor an allocation of its own: an access beyond its end is seen.
    set_device_memory_caching(false);
  }
  void TearDown() override { set_device_memory_caching(true); }

  Device device() const { return {GetParam(), 0}; }
  Tensor to_device(const Tensor& x) const { return x.to(device()); }
  Tensor to_host(const Tensor& x) const { return x.to(kCpu); }
};

inline std::string device_type_name(const ::testing::TestParamInfo<DeviceType>& info) {
  return info.param == DeviceType::kCpu ? "Cpu" : "Cuda";
}

}  // namespace lockstep::testing

#define LOCKSTEP_ON_ALL_DEVICES(Suite)                                                \
  INSTANTIATE_TEST_SUITE_P(                                                           \
      Devices, Suite,                                                                 \
      ::testing::Values(::lockstep::DeviceType::kCpu, ::lockstep::DeviceType::kCuda), \
      ::lockstep::testing::device_type_name)
