// What an optimizer is told per parameter group: the rate and its own numbers.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/optim/state_dict.h"

namespace lockstep::optim {

// One saved option: its name in the state dict and where it lives.
struct OptionField {
  std::string name;
  std::variant<double*, bool*> value;
};

class OptimizerOptions {
 public:
  virtual ~OptimizerOptions() = default;

  double get_lr() const { return lr_; }
  // Throws Error unless finite and not negative.
  void set_lr(double lr);

  virtual std::unique_ptr<OptimizerOptions> clone() const = 0;
  // Throws Error naming the optimizer, the option and its value unless all are usable.
  virtual void check() const = 0;
  // All options that are saved, "lr" first.
  virtual std::vector<OptionField> fields() = 0;
  // What OneCycleLR cycles against the rate: SGD's momentum, Adam's first beta; else nullptr.
  virtual double* cycled_momentum() { return nullptr; }

  void save(StateDict& dict, const std::string& prefix) const;
  // Replaces all options; throws Error, and leaves this half changed, where one is missing or not
  // usable: load into a clone.
  void load(const StateDict& dict, const std::string& prefix);

 protected:
  explicit OptimizerOptions(double lr) : lr_(lr) {}
  OptimizerOptions(const OptimizerOptions&) = default;
  OptimizerOptions& operator=(const OptimizerOptions&) = default;

  double lr_;
};

// Throws Error unless value is finite and not negative: "SGD: lr must be ... but is -1".
void check_option(const char* optimizer, const char* option, double value);

}  // namespace lockstep::optim
