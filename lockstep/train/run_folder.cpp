#include "lockstep/train/run_folder.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "lockstep/core/atomic_file.h"
#include "lockstep/core/check.h"

namespace lockstep::train {
namespace {

// One line; a path that is no UTF-8 must not keep a run from ending well.
std::string text_of(const nlohmann::json& json, int indent = -1) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// The log's whole lines of epochs before `first_epoch`.
std::string lines_before(const std::string& path, std::int64_t first_epoch) {
  std::ifstream log(path);
  std::string kept;
  for (std::string line; std::getline(log, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const auto epoch = json.is_object() ? json.find("epoch") : json.end();
    if (epoch == json.end() || !epoch->is_number_integer()) continue;
    if (epoch->get<std::int64_t>() < first_epoch) kept += line + "\n";
  }
  return kept;
}

}  // namespace

RunFolder::RunFolder(const std::string& model_path, const std::string& exp_name, bool writes)
    : path_((std::filesystem::path(model_path) / exp_name).lexically_normal().string()),
      writes_(writes) {
  if (!writes_) return;
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  LOCKSTEP_CHECK(!error, "--model_path: folder {} cannot be made: {}", path_, error.message());
  lock_ = std::make_unique<FolderLock>(path_);
}

bool RunFolder::holds(const std::string& file) const {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path parent = fs::path(file).parent_path();
  return fs::equivalent(parent.empty() ? "." : parent, path_, ignored);
}

std::string RunFolder::set_aside() {
  namespace fs = std::filesystem;
  if (!writes_) return "";
  const auto exists = [](const std::string& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
  };
  const bool has_run = exists(best_path()) || exists(last_path()) || exists(summary_path()) ||
                       !lines_before(log_path(), std::numeric_limits<std::int64_t>::max()).empty();
  if (!has_run) return "";
  std::string aside;
  std::error_code error;
  for (int n = 1; aside.empty(); ++n) {
    const std::string candidate = fmt::format("{}.{}", path_, n);
    if (fs::create_directory(candidate, error)) aside = candidate;
    LOCKSTEP_CHECK(!error || error == std::errc::file_exists || error == std::errc::not_a_directory,
                   "run folder {}: its earlier run cannot be moved to {}: {}", path_, candidate,
                   error.message());
  }
  for (const std::string& path :
       {best_path(), last_path(), log_path(), summary_path(), tensorboard_path()}) {
    if (!exists(path)) continue;
    fs::rename(path, fs::path(aside) / fs::path(path).filename(), error);
    LOCKSTEP_CHECK(!error, "run folder {}: {} cannot be moved to {}: {}", path_, path, aside,
                   error.message());
  }
  return aside;
}

bool RunFolder::adopt_best(const std::string& last) {
  namespace fs = std::filesystem;
  if (!writes_) return false;
  const fs::path theirs = fs::path(last).parent_path() / fs::path(best_path()).filename();
  std::error_code ignored;
  if (!fs::is_regular_file(theirs, ignored)) return false;
  if (fs::equivalent(theirs, best_path(), ignored)) return true;
  std::ifstream file(theirs, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  LOCKSTEP_CHECK(file.good() || file.eof(), "{}: it cannot be read", theirs.string());
  write_file_atomically(best_path(), bytes);
  return true;
}

void RunFolder::open(std::int64_t first_epoch) {
  if (!writes_) return;
  std::error_code ignored;
  std::filesystem::remove(summary_path(), ignored);  // it is of another run
  write_file_atomically(log_path(), lines_before(log_path(), first_epoch));
  log_ = std::make_unique<AppendFile>(log_path());
  events_ = std::make_unique<EventFile>(tensorboard_path(), first_epoch);
}

void RunFolder::add_epoch(const EpochReport& r) {
  if (!writes_) return;
  events_->add(r.epoch, {{"LR", static_cast<float>(r.learning_rate)},
                         {"Loss/train", static_cast<float>(r.train_loss)},
                         {"Loss/valid", static_cast<float>(r.valid_loss)},
                         {"Acc/train", static_cast<float>(r.train_accuracy)},
                         {"Acc/valid", static_cast<float>(r.valid_accuracy)}});
  log_->append(text_of({{"epoch", r.epoch},
                        {"step", r.step},
                        {"seconds", r.seconds},
                        {"learning_rate", r.learning_rate},
                        {"train_loss", r.train_loss},
                        {"train_acc", r.train_accuracy},
                        {"valid_loss", r.valid_loss},
                        {"valid_acc", r.valid_accuracy},
                        {"images_per_second", r.images_per_second},
                        {"exposed_comm_ms_per_step", r.exposed_comm_ms_per_step},
                        {"is_best", r.is_best}}));
}

void RunFolder::write_summary(const RunSummary& s) {
  if (!writes_) return;
  const nlohmann::json summary{{"best_valid_acc", s.best_valid_acc},
                               {"last_valid_acc", s.last_valid_acc},
                               {"epochs", s.epochs},
                               {"seconds", s.seconds},
                               {"images_per_second", s.images_per_second},
                               {"exposed_comm_ms_per_step", s.exposed_comm_ms_per_step},
                               {"world_size", s.world_size},
                               {"checkpoint", s.checkpoint}};
  write_file_atomically(summary_path(), text_of(summary, 2));
}

std::optional<RunSummary> RunFolder::summary_beside(const std::string& last,
                                                    std::int64_t epochs) const {
  std::ifstream file(std::filesystem::path(last).parent_path() / "summary.json");
  const auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  try {
    if (json.at("epochs") != epochs) return std::nullopt;
    RunSummary summary;
    json.at("best_valid_acc").get_to(summary.best_valid_acc);
    json.at("last_valid_acc").get_to(summary.last_valid_acc);
    json.at("epochs").get_to(summary.epochs);
    json.at("seconds").get_to(summary.seconds);
    json.at("images_per_second").get_to(summary.images_per_second);
    json.at("exposed_comm_ms_per_step").get_to(summary.exposed_comm_ms_per_step);
    json.at("world_size").get_to(summary.world_size);
    summary.checkpoint = best_path();
    summary.last_checkpoint = last_path();
    summary.tensorboard = tensorboard_path();
    return summary;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // none, or not one of ours
  }
}

}  // namespace lockstep::train
