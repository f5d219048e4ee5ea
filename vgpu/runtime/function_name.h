// The names of kernels, for messages.
#pragma once

#include <string>

namespace vgpu {

// "scale_kernel<float>", without namespaces' "(anonymous namespace)::" and arguments; "kernel"
// where the program was stripped of its symbols.
std::string function_name(const void* function);
// "_Z12scale_kernelIfEvPT_"; empty where it is not known.
std::string function_symbol(const void* function);

}  // namespace vgpu
