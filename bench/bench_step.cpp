// bench_step: how fast a model trains on synthetic images, on one rank or, under lockstep-run, on
// several.
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "bench/machine.h"
#include "bench/step_measure.h"
#include "bench/step_report.h"
#include "lockstep/core/error.h"
#include "lockstep/dist/bootstrap.h"
#include "lockstep/dist/environment.h"

namespace {

using namespace lockstep;
using namespace lockstep::bench;

void write_text(const std::string& text, const std::string& path) {
  std::FILE* file = path == "-" ? stdout : std::fopen(path.c_str(), "w");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr && file != stdout) written = std::fclose(file) == 0 && written;
  if (file == stdout) written = std::fflush(stdout) == 0 && written;
  if (!written) throw Error("cannot write " + path);
}

int run(int argc, char** argv) {
  std::string help;
  const StepOptions options = parse_step_options(argc, argv, help);
  if (!help.empty()) {
    std::fputs(help.c_str(), stdout);
    return 0;
  }
  const dist::Environment environment = dist::read_environment();
  if (options.ranks > 0 && options.ranks != environment.world_size)
    throw Error("--ranks " + std::to_string(options.ranks) + ", but this is a world of " +
                std::to_string(environment.world_size) +
                "; start it as lockstep-run --nproc-per-node " + std::to_string(options.ranks) +
                " bench_step ...");
  const int cores = allowed_cores();
  if (options.pin && options.threads == 1)
    pin_to_core(environment.local_rank, environment.local_world_size);
  std::shared_ptr<dist::ProcessGroup> group;
  if (environment.world_size > 1)
    group = dist::make_process_group("shm", dist::open_store(environment), environment.rank,
                                     environment.world_size);
  StepRun measured = measure_steps(options, group);
  measured.allowed_cores = cores;
  if (environment.rank != 0) return 0;
  if (options.json != "-") write_text(step_text(measured), "-");
  if (!options.json.empty()) write_text(step_json(measured), options.json);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_step: %s\n", error.what());
    return 2;
  }
}
