#include "lockstep/train/run_folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lockstep/core/atomic_file.h"
#include "lockstep/core/check.h"

namespace lockstep::train {

RunFolder::RunFolder(const std::string& model_path, const std::string& exp_name, bool writes)
    : path_((std::filesystem::path(model_path) / exp_name).lexically_normal().string()),
      writes_(writes) {
  if (!writes_) return;
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  LOCKSTEP_CHECK(!error, "--model_path: folder {} cannot be made: {}", path_, error.message());
  events_ = std::make_unique<EventFile>(tensorboard_path());
  log_ = std::make_unique<AppendFile>(path_ + "/log.jsonl");
}

void RunFolder::add_epoch(const EpochReport& r) {
  if (!writes_) return;
  events_->add(r.epoch, {{"LR", static_cast<float>(r.learning_rate)},
                         {"Loss/train", static_cast<float>(r.train_loss)},
                         {"Loss/valid", static_cast<float>(r.valid_loss)},
                         {"Acc/train", static_cast<float>(r.train_accuracy)},
                         {"Acc/valid", static_cast<float>(r.valid_accuracy)}});
  log_->append(nlohmann::json{{"epoch", r.epoch},
                              {"step", r.step},
                              {"seconds", r.seconds},
                              {"learning_rate", r.learning_rate},
                              {"train_loss", r.train_loss},
                              {"train_acc", r.train_accuracy},
                              {"valid_loss", r.valid_loss},
                              {"valid_acc", r.valid_accuracy},
                              {"images_per_second", r.images_per_second},
                              {"exposed_comm_ms_per_step", r.exposed_comm_ms_per_step},
                              {"is_best", r.is_best}}
                   .dump() +
               "\n");
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
                               {"checkpoint", s.checkpoint},
                               {"last_checkpoint", s.last_checkpoint},
                               {"tensorboard", s.tensorboard},
                               {"stop_reason", s.stop_reason}};
  write_file_atomically(path_ + "/summary.json", summary.dump(2) + "\n");
}

}  // namespace lockstep::train
