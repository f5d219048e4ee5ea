#include "command_line.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "lockstep/core/check.h"
#include "lockstep/models/make_model.h"

namespace lockstep::apps {
namespace {

// What is taken where a flag is not given: the recipe's numbers suit MNIST, the embedded digits are
// forty times fewer.
struct DatasetDefaults {
  double learning_rate;
  std::int64_t batch_size, epochs, warmup_epochs;
  train::WarmupType warmup_type;
};
constexpr DatasetDefaults kDigitsDefaults{0.05, 16, 8, 1, train::WarmupType::kCosine};

constexpr int kMostThreads = 1024;
constexpr double kLongestTimeout = 1e6;  // seconds; what a clock's nanoseconds surely hold

// A flag whose value is one of a few words.
template <class Enum>
CLI::Option* add_choice(CLI::App& app, const std::string& flags, Enum& target,
                        const std::map<std::string, Enum>& words, const std::string& help) {
  std::string now;
  std::vector<std::string> names;
  for (const auto& [name, value] : words) {
    names.push_back(name);
    if (value == target) now = name;
  }
  return app
      .add_option_function<std::string>(
          flags, [&target, words](const std::string& name) { target = words.at(name); }, help)
      ->check(CLI::IsMember(names))
      ->default_str(now);
}

template <class Integer>
std::string as_decimal(std::string& text) {
  Integer value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end)
    return "expected a whole number in decimal digits" +
           std::string(error == std::errc::result_out_of_range ? ", and a smaller one," : "") +
           " but got '" + text + "'";
  text = std::to_string(value);
  return "";
}

// CLI11 itself reads 010 as 8 and turns -1 or what is too large into the largest number.
void take_decimal_only(CLI::Option& option) {
  if (option.get_type_name() == "INT")
    option.transform(CLI::Validator(as_decimal<std::int64_t>, ""));
  if (option.get_type_name() == "UINT")
    option.transform(CLI::Validator(as_decimal<std::uint64_t>, ""));
}

}  // namespace

ParsedCommand parse_command_line(int argc, const char* const* argv) {
  ParsedCommand parsed;
  TrainCommand& c = parsed.command;
  train::RecipeOptions& r = c.recipe;
  CLI::App app{
      "Trains an image classifier by data parallelism. Start one process per rank with "
      "lockstep-run, or alone for one rank.",
      "lockstep-train"};
  app.set_version_flag("--version", "lockstep-train 0.1.0");
  app.option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);

  std::string data_path;
  int local_rank = 0;

  auto* recipe = app.add_option_group("The recipe");
  recipe->add_option("-n,--exp_name,--exp-name", r.exp_name, "names the run's folder");
  recipe->add_option("-l,--learning_rate,--learning-rate", r.learning_rate,
                     "base rate (digits: 0.05)");
  auto* batch =
      recipe->add_option("-b,--batch_size,--batch-size", r.batch_size, "per rank (digits: 16)");
  auto* epochs = recipe->add_option("-e,--epochs", r.epochs, "at most (digits: 8)");
  auto* warmup = recipe->add_option("-w,--warmup_epochs,--warmup-epochs", r.warmup_epochs,
                                    "epochs of rising rate (digits: 1)");
  add_choice(*recipe, "-t,--warmup_type,--warmup-type", r.warmup_type,
             {{"linear", train::WarmupType::kLinear}, {"cosine", train::WarmupType::kCosine}},
             "cosine decays to 0 after the warm-up (digits: cosine)");
  recipe->add_option("-s,--seed_num,--seed-num", r.seed, "of weights, shuffles and dropout");
  recipe->add_option("-d,--data_path,--data-path", data_path,
                     "folder of MNIST's IDX files, raw or .gz");
  recipe->add_option("-p,--model_path,--model-path", r.model_path, "where runs are kept");
  recipe->add_option("--local_rank,--local-rank", local_rank,
                     "accepted from old launchers; the environment counts");
  recipe->add_flag("--recipe-compat,--recipe_compat", r.recipe_compat,
                   "the published code's arithmetic, slips included");

  auto* training = app.add_option_group("Training");
  training->add_option("--dataset", c.dataset, "mnist, or the embedded digits (default without -d)")
      ->check(CLI::IsMember({"mnist", "digits"}));
  training->add_option("--model", r.model, "what is trained")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(models::kModelNames),
                                                     std::end(models::kModelNames))));
  add_choice(*training, "--warmup-unit", r.warmup_unit,
             {{"step", train::WarmupUnit::kStep}, {"epoch", train::WarmupUnit::kEpoch}},
             "how the rate rises");
  training->add_option("--momentum", r.momentum, "of SGD (Nesterov)");
  training->add_option("--weight-decay", r.weight_decay, "of SGD");
  training->add_option("--lookahead-k", r.lookahead_k, "fast steps per slow one; 0: off");
  training->add_option("--lookahead-alpha", r.lookahead_alpha,
                       "share of the way that slow weights go");
  training->add_option("--plateau-factor", r.plateau_factor,
                       "cut of the rate where the loss stands");
  training->add_option("--plateau-patience", r.plateau_patience, "epochs before that");
  training->add_option("--stop-patience", r.stop_patience,
                       "epochs without improvement before the end");
  add_choice(
      *training, "--stop-vote", r.stop_vote,
      {{"any", train::Vote::kAny}, {"all", train::Vote::kAll}, {"rank0", train::Vote::kRank0}},
      "whose wish to stop counts");

  auto* running = app.add_option_group("Running");
  running
      ->add_option("--resume", r.resume,
                   "go on from a checkpoint; without a path from the run's own last one")
      ->expected(0, 1)
      ->default_str("");
  running->add_option("--save-every", r.save_every,
                      "steps between checkpoints within an epoch; 0: none");
  running->add_option("--device", c.device, "cpu, cuda (one device to a rank) or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  running->add_option("--threads", c.threads, "of each rank; 0: its share of the cores");
  running->add_flag("--deterministic,!--no-deterministic", c.deterministic,
                    "the same bits for any number of threads");
  running->add_option("--bucket-cap-mb", r.bucket_cap_mb,
                      "size of gradient buckets; 0: 1 MiB, then 25");
  running->add_option("--workers", r.loader_workers, "loader threads of each rank");
  running->add_option("--timeout", c.timeout_seconds, "seconds that a collective may take");
  running->add_flag("-q,--quiet", c.quiet, "no progress bar");

  for (CLI::App* group : {recipe, training, running})
    for (CLI::Option* option : group->get_options()) take_decimal_only(*option);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    std::ostringstream answer;
    app.exit(e, answer, answer);
    parsed.answer = answer.str();
    return parsed;
  } catch (const CLI::ParseError& e) {
    throw UsageError(std::string(e.what()) + "; --help lists the flags");
  }
  const bool has_path = recipe->count("--data_path") > 0;
  if (has_path && data_path.empty()) throw UsageError("--data_path: expected a folder but got ''");
  if (has_path && c.dataset == "digits")
    throw UsageError("--data_path: the digits are embedded, so '" + data_path +
                     "' would not be read");
  if (has_path) c.data_path = data_path;
  if (c.dataset.empty()) c.dataset = has_path ? "mnist" : "digits";
  if (c.dataset == "digits") {
    if (recipe->count("--learning_rate") == 0) r.learning_rate = kDigitsDefaults.learning_rate;
    if (recipe->count("--warmup_type") == 0) r.warmup_type = kDigitsDefaults.warmup_type;
    if (batch->count() == 0) r.batch_size = kDigitsDefaults.batch_size;
    if (epochs->count() == 0) r.epochs = kDigitsDefaults.epochs;
    if (warmup->count() == 0) r.warmup_epochs = kDigitsDefaults.warmup_epochs;
  }
  if (running->count("--resume") > 0 && r.resume.empty())
    r.resume = (std::filesystem::path(r.model_path) / r.exp_name / "last.safetensors").string();
  try {
    check_options(r);
    LOCKSTEP_CHECK(c.threads >= 0 && c.threads <= kMostThreads,
                   "--threads: expected 0 (its share of the cores) to {} but got {}", kMostThreads,
                   c.threads);
    LOCKSTEP_CHECK(std::isfinite(c.timeout_seconds) && c.timeout_seconds > 0 &&
                       c.timeout_seconds <= kLongestTimeout,
                   "--timeout: expected seconds above 0, at most {}, but got {}", kLongestTimeout,
                   c.timeout_seconds);
  } catch (const Error& e) {
    throw UsageError(e.what());
  }
  return parsed;
}

}  // namespace lockstep::apps
