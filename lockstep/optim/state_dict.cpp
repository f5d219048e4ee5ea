#include "lockstep/optim/state_dict.h"

#include "lockstep/core/check.h"

namespace lockstep::optim {
namespace {

template <class T>
void put_scalar(StateDict& dict, const std::string& key, T value) {
  Tensor t = empty({}, {.dtype = kDTypeOf<T>});
  *t.data<T>() = value;
  dict.insert_or_assign(key, std::move(t));
}

const Tensor& checked(const StateDict& dict, const std::string& key, DType dtype) {
  const Tensor* t = find(dict, key);
  LOCKSTEP_CHECK(t != nullptr, "load_state_dict: '{}' is missing", key);
  LOCKSTEP_CHECK(t->dtype() == dtype, "load_state_dict: '{}' is {}, wanted {}", key, t->dtype(),
                 dtype);
  return *t;
}

template <class T>
T get_scalar(const StateDict& dict, const std::string& key) {
  const Tensor& t = checked(dict, key, kDTypeOf<T>);
  LOCKSTEP_CHECK(t.numel() == 1, "load_state_dict: '{}' has shape {}, wanted one number", key,
                 t.shape());
  return *t.data<T>();
}

}  // namespace

void put(StateDict& dict, const std::string& key, double value) { put_scalar(dict, key, value); }
void put(StateDict& dict, const std::string& key, std::int64_t value) {
  put_scalar(dict, key, value);
}
void put(StateDict& dict, const std::string& key, bool value) { put_scalar(dict, key, value); }
void put(StateDict& dict, const std::string& key, std::span<const double> values) {
  dict.insert_or_assign(key, tensor(values, Shape{static_cast<std::int64_t>(values.size())}));
}

double get_number(const StateDict& dict, const std::string& key) {
  return get_scalar<double>(dict, key);
}
std::int64_t get_integer(const StateDict& dict, const std::string& key) {
  return get_scalar<std::int64_t>(dict, key);
}
bool get_flag(const StateDict& dict, const std::string& key) { return get_scalar<bool>(dict, key); }

std::vector<double> get_numbers(const StateDict& dict, const std::string& key, std::size_t count) {
  const Tensor t = checked(dict, key, kF64).contiguous();
  LOCKSTEP_CHECK(t.dim() == 1 && t.numel() == static_cast<std::int64_t>(count),
                 "load_state_dict: '{}' has shape {}, wanted ({})", key, t.shape(), count);
  const double* values = t.data<double>();
  return {values, values + count};
}

const Tensor* find(const StateDict& dict, const std::string& key) {
  const auto it = dict.find(key);
  return it == dict.end() ? nullptr : &it->second;
}

}  // namespace lockstep::optim
