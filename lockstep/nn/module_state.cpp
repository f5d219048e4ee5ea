// A module's values: conversion to another dtype, saving and loading by name.
#include <cstring>
#include <unordered_map>

#include "lockstep/core/check.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/nn/module.h"

namespace lockstep::nn {
namespace {

bool same_values(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  const Tensor x = a.to(kCpu).contiguous(), y = b.to(kCpu).contiguous();
  return x.nbytes() == 0 || std::memcmp(x.data(), y.data(), x.nbytes()) == 0;
}

void append(std::string& message, const std::string& part) {
  message += (message.empty() ? "" : "; ") + part;
}

}  // namespace

void Module::to(DType dtype, bool recurse) {
  LOCKSTEP_CHECK(is_floating(dtype), "Module.to: expected a floating dtype but got {}", dtype);
  const auto convert = [&](const NamedVariables& variables) {
    for (const auto& [name, handle] : variables) {
      Variable variable = handle;
      if (!is_floating(variable.dtype()) || variable.dtype() == dtype) continue;
      variable.set_data(kernels::cast(variable.data(), dtype));
    }
  };
  const auto convert_own = [&](Module& module) {
    convert(module.parameters_);
    convert(module.buffers_);
  };
  if (recurse)
    apply(convert_own);
  else
    convert_own(*this);
}

void Module::to(Device device) {
  require_device(device, "Module.to");
  apply([&](Module& module) {
    for (const NamedVariables* all : {&module.parameters_, &module.buffers_})
      for (const auto& [name, handle] : *all) {
        Variable variable = handle;
        if (variable.data().device() != device) variable.set_data(variable.data().to(device));
      }
  });
}

StateDict Module::state_dict() const {
  StateDict state;
  visit("", [&](const std::string& name, const Variable& variable, Kind) {
    state.emplace(name, variable.data());
  });
  return state;
}

IncompatibleKeys Module::load_state_dict(const StateDict& state, bool strict) {
  IncompatibleKeys keys;
  std::string mismatches, conflicts;
  struct Source {
    std::string name;
    const Tensor* tensor;
  };
  std::unordered_map<const void*, Source> sources;
  NamedVariables targets;
  std::vector<std::pair<std::string, const void*>> absent;
  StateDict unexpected = state;
  visit("", [&](const std::string& name, const Variable& variable, Kind) {
    const auto found = state.find(name);
    if (found == state.end()) {
      absent.emplace_back(name, variable.id());
      return;
    }
    unexpected.erase(name);
    const Tensor& value = found->second;
    if (!value.defined() || value.shape() != variable.shape()) {
      append(mismatches, fmt::format("{} is {} here but {} in the state dict", name,
                                     variable.shape(), value.shape()));
      return;
    }
    const auto [first, inserted] = sources.try_emplace(variable.id(), Source{name, &value});
    if (inserted)
      targets.emplace_back(name, variable);
    else if (!same_values(*first->second.tensor, value))
      append(conflicts, fmt::format("{} and {} are one tensor here but differ in the state dict",
                                    first->second.name, name));
  });
  for (const auto& [name, id] : absent)
    if (!sources.contains(id)) keys.missing.push_back(name);
  for (const auto& [name, value] : unexpected) keys.unexpected.push_back(name);

  std::string message;
  if (strict && !keys.missing.empty())
    append(message, fmt::format("missing keys: {}", fmt::join(keys.missing, ", ")));
  if (strict && !keys.unexpected.empty())
    append(message, fmt::format("unexpected keys: {}", fmt::join(keys.unexpected, ", ")));
  if (!mismatches.empty()) append(message, "shapes differ: " + mismatches);
  if (!conflicts.empty()) append(message, conflicts);
  LOCKSTEP_CHECK(message.empty(), "load_state_dict: {}", message);

  for (const auto& [name, variable] : targets)
    kernels::copy_into(variable.data(), *sources.at(variable.id()).tensor);
  return keys;
}

}  // namespace lockstep::nn
