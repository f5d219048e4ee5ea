// Classifiers by name, for programs that take the name from their user.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "lockstep/models/classifier.h"

namespace lockstep::models {

struct ModelOptions : ImageOptions {
  std::vector<std::int64_t> hidden = {128, 64};  // sizes between the MLP's input and its output
};

// The names that make_model knows.
inline constexpr std::string_view kModelNames[] = {"toy_net", "mlp", "small_net"};

// One of kModelNames, with new parameters from the calling thread's default generator.
// Errors: another name (the message lists these), options that the model refuses.
std::shared_ptr<Classifier> make_model(std::string_view name, const ModelOptions& options = {});

}  // namespace lockstep::models
