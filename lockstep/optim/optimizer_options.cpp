#include "lockstep/optim/optimizer_options.h"

#include <cmath>

#include "lockstep/core/check.h"

namespace lockstep::optim {

void check_option(const char* optimizer, const char* option, double value) {
  LOCKSTEP_CHECK(std::isfinite(value) && value >= 0,
                 "{}: {} must be finite and not negative but is {}", optimizer, option, value);
}

void OptimizerOptions::set_lr(double lr) {
  check_option("set_lr", "lr", lr);
  lr_ = lr;
}

void OptimizerOptions::save(StateDict& dict, const std::string& prefix) const {
  const std::unique_ptr<OptimizerOptions> copy = clone();  // fields() points into it
  for (const OptionField& field : copy->fields())
    std::visit([&](auto* value) { put(dict, prefix + field.name, *value); }, field.value);
}

void OptimizerOptions::load(const StateDict& dict, const std::string& prefix) {
  for (const OptionField& field : fields()) {
    if (double* const* number = std::get_if<double*>(&field.value))
      **number = get_number(dict, prefix + field.name);
    else
      *std::get<bool*>(field.value) = get_flag(dict, prefix + field.name);
  }
  check();
}

}  // namespace lockstep::optim
