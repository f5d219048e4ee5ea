// Where a run keeps its files: <model_path>/<exp_name>/.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lockstep/train/append_file.h"
#include "lockstep/train/event_file.h"
#include "lockstep/train/folder_lock.h"
#include "lockstep/train/reporter.h"

namespace lockstep::train {

// best.safetensors     weights with the best validation accuracy so far
// last.safetensors     everything that --resume needs
// log.jsonl            one JSON object per epoch; a number that is not finite is null
// summary.json         how the run ended
// tensorboard/         event files: LR, Loss/train, Loss/valid, Acc/train, Acc/valid
// .lock                held while a run is in the folder
// Only the writing rank makes or changes files; for the others the functions do nothing.
class RunFolder {
 public:
  // Throws Error naming the folder if it can't be made or another run is in it.
  RunFolder(const std::string& model_path, const std::string& exp_name, bool writes);

  std::string best_path() const { return path_ + "/best.safetensors"; }
  std::string last_path() const { return path_ + "/last.safetensors"; }
  std::string tensorboard_path() const { return path_ + "/tensorboard"; }
  bool writes() const { return writes_; }

  // Whether the file lies in this folder.
  bool holds(const std::string& file) const;
  // Makes room for a run that does not go on from what is here: moves the files of an earlier run
  // to the first free one of <folder>.1, <folder>.2, … and names it; "" where there is none.
  std::string set_aside();
  // Of a run that goes on from `last`: makes the best weights beside that file this folder's best
  // (they are, where `last` is this folder's own). False if there are none.
  bool adopt_best(const std::string& last);
  // Opens the event file and the log for a run that starts at `first_epoch`: lines of that epoch
  // and later ones are from a run that was interrupted, or are the last run's, and go.
  void open(std::int64_t first_epoch);
  // To the event file and the log.
  void add_epoch(const EpochReport& report);
  void write_summary(const RunSummary& summary);
  // The summary beside `last`, with this folder's paths, if it is of a run of so many epochs.
  std::optional<RunSummary> summary_beside(const std::string& last, std::int64_t epochs) const;

 private:
  std::string log_path() const { return path_ + "/log.jsonl"; }
  std::string summary_path() const { return path_ + "/summary.json"; }

  std::string path_;
  bool writes_;
  std::unique_ptr<FolderLock> lock_;
  std::unique_ptr<EventFile> events_;
  std::unique_ptr<AppendFile> log_;
};

}  // namespace lockstep::train
