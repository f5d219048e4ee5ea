// The flags of lockstep-train.
#pragma once

#include <string>

#include "lockstep/train/recipe_options.h"

namespace lockstep::apps {

struct TrainCommand {
  train::RecipeOptions recipe;
  std::string dataset;  // "mnist", "digits"
  std::string data_path = "./datasets/";
  int threads = 0;  // per rank; 0: the launcher's share of the cores
  bool deterministic = true;
  double timeout_seconds = 300;  // of a collective
  bool quiet = false;
};

// The result of parsing: either a command, or the exit code with which the program is to end (help
// and errors have been printed).
struct ParsedCommand {
  TrainCommand command;
  bool ends = false;
  int exit_code = 0;
};

ParsedCommand parse_command_line(int argc, const char* const* argv);

}  // namespace lockstep::apps
