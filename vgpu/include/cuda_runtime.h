// Stands where CUDA's header of this name stands, for code that is compiled for the virtual GPU.
#pragma once

#include "vgpu/device_api.h"
#include "vgpu/device_math.h"
#include "vgpu/host_api.h"
#include "vgpu/launch.h"
#include "vgpu/vector_types.h"
