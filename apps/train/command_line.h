// The flags of lockstep-train.
#pragma once

#include <string>

#include "lockstep/core/error.h"
#include "lockstep/train/recipe_options.h"

namespace lockstep::apps {

struct TrainCommand {
  train::RecipeOptions recipe;
  std::string dataset;  // "mnist", "digits"
  std::string data_path = "./datasets/";
  // "cpu"; "cuda": the device of the rank's number on its host; "auto": that where there is one.
  std::string device = "auto";
  int threads = 0;  // per rank; 0: the launcher's share of the cores
  bool deterministic = true;
  double timeout_seconds = 300;  // of a collective
  bool quiet = false;
};

// A flag or value that can't be meant; the program's exit code is 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

// Either a command, or the text of --help or --version, which is all that was asked for.
struct ParsedCommand {
  TrainCommand command;
  std::string answer;
};

// Of a flag given twice the last one counts. Throws UsageError naming flag, value and what is
// wanted.
ParsedCommand parse_command_line(int argc, const char* const* argv);

}  // namespace lockstep::apps
