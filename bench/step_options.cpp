#include "bench/step_options.h"

#include <CLI/CLI.hpp>

#include "lockstep/core/error.h"
#include "lockstep/models/make_model.h"

namespace lockstep::bench {
namespace {

DType model_dtype(const std::string& name) {
  if (name == "f32") return DType::kF32;
  if (name == "f64") return DType::kF64;
  if (name == "bf16" || name == "f16")
    throw Error("--dtype " + name + ": models train in f32 or f64; there is no autocast to " +
                name);
  throw Error("--dtype " + name + ": no such data type; models train in f32 or f64");
}

}  // namespace

StepOptions parse_step_options(int argc, char** argv, std::string& help) {
  StepOptions o;
  CLI::App app(
      "Training steps on synthetic images: forward, cross-entropy, zero_grad, backward, SGD with "
      "Nesterov momentum. Start under lockstep-run for several ranks with DDP.");
  std::string dtype = "f32", models;
  int pin = 1;
  for (const std::string_view name : models::kModelNames)
    models += (models.empty() ? "" : ", ") + std::string(name);
  app.add_option("--model", o.model, models)->capture_default_str();
  app.add_option("--batch", o.batch, "images per rank and step")->capture_default_str();
  app.add_option("--dtype", dtype, "f32, f64")->capture_default_str();
  app.add_option("--threads", o.threads, "threads per rank")->capture_default_str();
  app.add_option("--steps", o.steps, "steps that count")->capture_default_str();
  app.add_option("--warmup", o.warm_up, "steps before them")->capture_default_str();
  app.add_option("--ranks", o.ranks, "fail unless a launcher has started this many");
  app.add_flag("--lookahead", o.lookahead, "wrap the optimizer in Lookahead (k 10, alpha 0.5)");
  app.add_option("--pin", pin, "pin rank r to core r where it has one thread")
      ->capture_default_str();
  app.add_option("--seeds", o.seeds, "one training per seed: 1,2,3")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--json", o.json, "write results to this file; - for stdout alone");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    help = app.help();
    return o;
  } catch (const CLI::ParseError& error) {
    throw Error(error.what());
  }
  o.dtype = model_dtype(dtype);
  o.pin = pin != 0;
  if (o.batch < 2 || o.steps < 1 || o.warm_up < 0 || o.threads < 1 || o.ranks < 0)
    throw Error(
        "--batch must be at least 2 (batch norm), --steps and --threads at least 1, "
        "--warmup and --ranks not negative");
  return o;
}

}  // namespace lockstep::bench
