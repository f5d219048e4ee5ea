// A tensor kept for backward, which notices that somebody has changed it in between.
#pragma once

#include <cstdint>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/tensor.h"

namespace lockstep {

// A value saved for backward was changed in place; the engine adds the operation's name.
class InPlaceChangeError : public Error {
 public:
  using Error::Error;
};

class SavedTensor {
 public:
  SavedTensor() = default;
  explicit SavedTensor(Tensor tensor) : tensor_(std::move(tensor)), version_(tensor_.version()) {}

  bool defined() const { return tensor_.defined(); }
  // Throws InPlaceChangeError if the storage has been written since it was saved.
  const Tensor& get() const {
    if (tensor_.version() != version_) [[unlikely]]
      changed();
    return tensor_;
  }

 private:
  [[noreturn]] void changed() const;

  Tensor tensor_;
  std::uint64_t version_ = 0;
};

}  // namespace lockstep
