#include "lockstep/nn/module.h"

#include <algorithm>
#include <unordered_set>

#include "lockstep/core/check.h"

namespace lockstep::nn {
namespace {

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

template <class Pairs>
bool has_name(const Pairs& pairs, const std::string& name) {
  return std::any_of(pairs.begin(), pairs.end(), [&](const auto& p) { return p.first == name; });
}

std::vector<Variable> without_names(NamedVariables&& named) {
  std::vector<Variable> variables;
  variables.reserve(named.size());
  for (auto& [name, variable] : named) variables.push_back(std::move(variable));
  return variables;
}

}  // namespace

void Module::check_name(const std::string& name, const char* what) const {
  LOCKSTEP_CHECK(!name.empty() && name.find('.') == std::string::npos,
                 "{}: a name must not be empty or contain a dot, got '{}'", what, name);
  LOCKSTEP_CHECK(
      !has_name(parameters_, name) && !has_name(buffers_, name) && !has_name(children_, name),
      "{}: the module already has a member named '{}'", what, name);
}

Variable Module::register_parameter(const std::string& name, Variable value, bool requires_grad) {
  check_name(name, "register_parameter");
  LOCKSTEP_CHECK(value.defined() && value.is_leaf(),
                 "register_parameter: '{}' must be a leaf, not {}", name,
                 value.defined() ? "the result of an operation" : "undefined");
  value.requires_grad_(requires_grad);
  parameters_.emplace_back(name, value);
  return value;
}

Variable Module::register_buffer(const std::string& name, Tensor value) {
  check_name(name, "register_buffer");
  LOCKSTEP_CHECK(value.defined(), "register_buffer: '{}' is undefined", name);
  return buffers_.emplace_back(name, Variable(std::move(value))).second;
}

void Module::add_module(const std::string& name, std::shared_ptr<Module> module) {
  check_name(name, "register_module");
  LOCKSTEP_CHECK(module, "register_module: '{}' is empty", name);
  LOCKSTEP_CHECK(!module->contains(this), "register_module: '{}' contains this module", name);
  children_.emplace_back(name, std::move(module));
}

bool Module::contains(const Module* other) const {
  return other == this || std::any_of(children_.begin(), children_.end(), [&](const auto& child) {
           return child.second->contains(other);
         });
}

void Module::visit(const std::string& prefix, const Visitor& visitor) const {
  for (const auto& [name, variable] : parameters_)
    visitor(join(prefix, name), variable, Kind::kParameter);
  for (const auto& [name, variable] : buffers_)
    visitor(join(prefix, name), variable, Kind::kBuffer);
  for (const auto& [name, child] : children_) child->visit(join(prefix, name), visitor);
}

NamedVariables Module::unique(Kind wanted) const {
  NamedVariables named;
  std::unordered_set<const void*> seen;
  visit("", [&](const std::string& name, const Variable& variable, Kind kind) {
    if (kind == wanted && seen.insert(variable.id()).second) named.emplace_back(name, variable);
  });
  return named;
}

NamedVariables Module::named_parameters() const { return unique(Kind::kParameter); }
NamedVariables Module::named_buffers() const { return unique(Kind::kBuffer); }
std::vector<Variable> Module::parameters() const { return without_names(named_parameters()); }
std::vector<Variable> Module::buffers() const { return without_names(named_buffers()); }

std::vector<std::shared_ptr<Module>> Module::children() const {
  std::vector<std::shared_ptr<Module>> modules;
  modules.reserve(children_.size());
  for (const auto& [name, child] : children_) modules.push_back(child);
  return modules;
}

std::vector<std::pair<std::string, Module*>> Module::named_modules() {
  std::vector<std::pair<std::string, Module*>> modules;
  std::unordered_set<const Module*> seen;
  const std::function<void(const std::string&, Module&)> walk = [&](const std::string& path,
                                                                    Module& module) {
    if (!seen.insert(&module).second) return;
    modules.emplace_back(path, &module);
    for (const auto& [name, child] : module.children_) walk(join(path, name), *child);
  };
  walk("", *this);
  return modules;
}

void Module::apply(const std::function<void(Module&)>& f) {
  std::unordered_set<const Module*> seen;
  const std::function<void(Module&)> walk = [&](Module& module) {
    if (!seen.insert(&module).second) return;
    for (const auto& [name, child] : module.children_) walk(*child);
    f(module);
  };
  walk(*this);
}

void Module::train(bool on) {
  apply([on](Module& module) { module.training_ = on; });
}

void Module::zero_grad(bool set_to_none) {
  for (Variable& parameter : parameters()) parameter.zero_grad(set_to_none);
}

void Module::requires_grad_(bool on) {
  for (Variable& parameter : parameters()) parameter.requires_grad_(on);
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const Variable& parameter : parameters()) count += parameter.numel();
  return count;
}

}  // namespace lockstep::nn
