// What the devices are: one A100-like kind, with the memory that was asked for.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "vgpu/include/vgpu/host_api.h"
#include "vgpu/runtime/device.h"
#include "vgpu/runtime/settings.h"

using vgpu::fail;

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return fail(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (properties == nullptr) return fail(cudaErrorInvalidValue);
  if (vgpu::device_at(device) == nullptr) return fail(cudaErrorInvalidDevice);
  cudaDeviceProp p{};
  const int physical = vgpu::settings().physical_device(device);
  std::snprintf(p.name, sizeof(p.name), "virtual GPU");
  std::snprintf(p.uuid.bytes, sizeof(p.uuid.bytes), "vgpu-%d", physical);
  p.totalGlobalMem = vgpu::settings().memory;
  p.sharedMemPerBlock = 48 << 10;
  p.sharedMemPerBlockOptin = 227 << 10;
  p.sharedMemPerMultiprocessor = 228 << 10;
  p.regsPerBlock = p.regsPerMultiprocessor = 64 << 10;
  p.warpSize = 32;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 2147483647;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.major = 8;
  p.multiProcessorCount = 8;
  p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = p.streamPrioritiesSupported =
      p.memoryPoolsSupported = p.ipcEventSupported = 1;
  p.pciBusID = physical + 1;
  p.asyncEngineCount = 2;
  p.l2CacheSize = 40 << 20;
  p.maxThreadsPerMultiProcessor = 2048;
  p.maxBlocksPerMultiProcessor = 32;
  *properties = p;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (value == nullptr) return fail(cudaErrorInvalidValue);
  cudaDeviceProp p;
  if (const cudaError_t error = cudaGetDeviceProperties(&p, device); error != cudaSuccess)
    return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = p.maxThreadsPerBlock;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(p.sharedMemPerBlock);
      return cudaSuccess;
    case cudaDevAttrWarpSize:
      *value = p.warpSize;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = p.multiProcessorCount;
      return cudaSuccess;
    case cudaDevAttrL2CacheSize:
      *value = p.l2CacheSize;
      return cudaSuccess;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = p.maxThreadsPerMultiProcessor;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = p.major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = p.minor;
      return cudaSuccess;
    case cudaDevAttrStreamPrioritiesSupported:
      *value = p.streamPrioritiesSupported;
      return cudaSuccess;
    case cudaDevAttrCooperativeLaunch:
      *value = 0;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(p.sharedMemPerBlockOptin);
      return cudaSuccess;
    case cudaDevAttrMemoryPoolsSupported:
      *value = p.memoryPoolsSupported;
      return cudaSuccess;
  }
  return fail(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  if (vgpu::device_at(device) == nullptr) return fail(cudaErrorInvalidDevice);
  char text[24];
  std::snprintf(text, sizeof(text), "0000:%02X:00.0", vgpu::settings().physical_device(device) + 1);
  if (id == nullptr || bytes < static_cast<int>(std::strlen(text)) + 1)
    return fail(cudaErrorInvalidValue);
  std::snprintf(id, static_cast<std::size_t>(bytes), "%s", text);
  return cudaSuccess;
}
