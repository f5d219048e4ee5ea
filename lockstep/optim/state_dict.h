// What optimizers, schedulers and stoppers save: named tensors, fit for a safetensors file. Numbers
// are tensors without dimensions, f64, i64 or bool, so that they come back exactly.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/safetensors.h"

namespace lockstep::optim {

using StateDict = TensorMap;

void put(StateDict& dict, const std::string& key, double value);
void put(StateDict& dict, const std::string& key, std::int64_t value);
void put(StateDict& dict, const std::string& key, bool value);
void put(StateDict& dict, const std::string& key, std::span<const double> values);

// Each throws Error naming the key where it is absent or not such a number; `get_numbers` also
// where the count is not `count`.
double get_number(const StateDict& dict, const std::string& key);
std::int64_t get_integer(const StateDict& dict, const std::string& key);
bool get_flag(const StateDict& dict, const std::string& key);
std::vector<double> get_numbers(const StateDict& dict, const std::string& key, std::size_t count);

// The tensor of that name, or nullptr.
const Tensor* find(const StateDict& dict, const std::string& key);

}  // namespace lockstep::optim
