// The value-like handle on a module that users hold, as in PyTorch's C++ front end.
//
//   struct NetImpl : nn::Module {
//     NetImpl() { conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(1, 64, 3))); }
//     Variable forward(const Variable& x) { return relu(conv(x)); }
//     nn::Conv2d conv{nullptr};
//   };
//   LOCKSTEP_MODULE(Net);
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::nn {

// Copies share the module. A holder is a handle: const holders give access to a mutable module.
template <class Contained>
class ModuleHolder {
 public:
  using ContainedType = Contained;

  // A new module from its default constructor; write {nullptr} for a holder without one.
  ModuleHolder() : impl_(std::make_shared<Contained>()) {}
  ModuleHolder(std::nullptr_t) {}                                      // NOLINT
  ModuleHolder(std::shared_ptr<Contained> m) : impl_(std::move(m)) {}  // NOLINT
  template <class Head, class... Tail>
  requires(!std::is_base_of_v<ModuleHolder, std::remove_cvref_t<Head>> &&
           std::is_constructible_v<Contained, Head, Tail...>) explicit ModuleHolder(Head&& head,
                                                                                    Tail&&... tail)
      : impl_(std::make_shared<Contained>(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}

  bool is_empty() const noexcept { return impl_ == nullptr; }
  explicit operator bool() const noexcept { return !is_empty(); }

  // Throw Error where the holder is empty.
  Contained* get() const {
    if (!impl_) [[unlikely]]
      throw Error("module holder: it is empty; assign a module to it first");
    return impl_.get();
  }
  const std::shared_ptr<Contained>& ptr() const {
    get();
    return impl_;
  }
  Contained* operator->() const { return get(); }
  Contained& operator*() const { return *get(); }

  template <class... Args>
  decltype(auto) operator()(Args&&... args) const {
    return get()->forward(std::forward<Args>(args)...);
  }

 private:
  std::shared_ptr<Contained> impl_;
};

}  // namespace lockstep::nn

// Defines `Name`, the holder of `NameImpl`.
#define LOCKSTEP_MODULE(Name)                                     \
  class Name : public ::lockstep::nn::ModuleHolder<Name##Impl> {  \
   public:                                                        \
    using ::lockstep::nn::ModuleHolder<Name##Impl>::ModuleHolder; \
    using Impl = Name##Impl;                                      \
  }
