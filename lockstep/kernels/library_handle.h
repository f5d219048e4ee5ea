// Handles of C libraries that end with their scope. Internal.
#pragma once

#include <memory>

namespace lockstep::kernels {

template <auto destroy, class Handle>
struct HandleDestroyer {
  using pointer = Handle;
  void operator()(Handle handle) const { destroy(handle); }
};

// LibraryHandle<cudnnDestroyTensorDescriptor, cudnnTensorDescriptor_t>
template <auto destroy, class Handle>
using LibraryHandle = std::unique_ptr<Handle, HandleDestroyer<destroy, Handle>>;

}  // namespace lockstep::kernels
