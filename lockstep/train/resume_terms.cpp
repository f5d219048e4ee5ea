#include "lockstep/train/resume_terms.h"

#include <map>
#include <sstream>

#include "lockstep/core/check.h"

namespace lockstep::train {
namespace {

std::map<std::string, std::string> by_name(const std::string& terms) {
  std::map<std::string, std::string> values;
  std::istringstream lines(terms);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t blank = line.find(' ');
    if (blank != std::string::npos) values[line.substr(0, blank)] = line.substr(blank + 1);
  }
  return values;
}

}  // namespace

std::string resume_terms(const RecipeOptions& o, std::int64_t train_images,
                         std::int64_t valid_images) {
  std::string terms;
  const auto add = [&](const char* name, const auto& value) {
    terms += fmt::format("{} {}\n", name, value);
  };
  add("batch_size", o.batch_size);
  add("learning_rate", o.learning_rate);
  add("seed_num", o.seed);
  add("recipe_compat", o.recipe_compat);
  add("warmup_epochs", o.warmup_epochs);
  add("warmup_type", o.warmup_type == WarmupType::kCosine ? "cosine" : "linear");
  add("warmup_unit", o.warmup_unit == WarmupUnit::kStep ? "step" : "epoch");
  if (o.warmup_type == WarmupType::kCosine) add("epochs", o.epochs);
  add("momentum", o.momentum);
  add("weight_decay", o.weight_decay);
  add("lookahead_k", o.lookahead_k);
  add("lookahead_alpha", o.lookahead_alpha);
  add("plateau_factor", o.plateau_factor);
  add("plateau_patience", o.plateau_patience);
  add("training_images", train_images);
  add("validation_images", valid_images);
  return terms;
}

std::string terms_difference(const std::string& was, const std::string& is) {
  const auto before = by_name(was), now = by_name(is);
  std::string difference;
  const auto add = [&](const std::string& name, const std::string& a, const std::string& b) {
    difference += fmt::format("{}{} was {} and is {}", difference.empty() ? "" : ", ", name, a, b);
  };
  for (const auto& [name, value] : now) {
    const auto it = before.find(name);
    if (it == before.end()) add(name, "not set", value);
    if (it != before.end() && it->second != value) add(name, it->second, value);
  }
  for (const auto& [name, value] : before)
    if (!now.contains(name)) add(name, value, "not set");
  return difference;
}

}  // namespace lockstep::train
