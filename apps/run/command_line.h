// lockstep-run's flags: torchrun's names, in both spellings (--master-port, --master_port).
#pragma once

#include <optional>

#include "lockstep/dist/launch/launch_options.h"

namespace lockstep::run {

// Nothing if the command line was answered already (--help, --version: exit_code 0) or is wrong
// (exit_code 2, the reason on stderr).
std::optional<dist::LaunchOptions> parse_command_line(int argc, char** argv, int& exit_code);

}  // namespace lockstep::run
