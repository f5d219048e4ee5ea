// Children without names of their own: "0", "1", …
#pragma once

#include <string>
#include <utility>

#include "lockstep/nn/module.h"

namespace lockstep::nn {

// For parameters' names and order only; the owner keeps the typed holders and has the forward:
//   layers.push_back(list->push_back(nn::Linear(4, 4)));
class ModuleListImpl : public Module {
 public:
  // Returns what it was given (a holder or a shared pointer).
  template <class M>
  M push_back(M module) {
    return register_module(std::to_string(size()), std::move(module));
  }
  std::size_t size() const { return named_children().size(); }
};
LOCKSTEP_MODULE(ModuleList);

}  // namespace lockstep::nn
