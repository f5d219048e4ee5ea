// What a run tells while it goes on. The library prints nothing: the program that embeds it does.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/train/progress_bar.h"

namespace lockstep::train {

struct EpochReport {
  std::int64_t epoch = 0;    // counted from 0
  std::int64_t epochs = 0;   // upper bound
  std::int64_t step = 0;     // optimizer steps so far
  double seconds = 0;        // of training and validation
  double learning_rate = 0;  // that the epoch's last step used
  double train_loss = 0;
  double train_accuracy = 0;
  double valid_loss = 0;
  double valid_accuracy = 0;
  double images_per_second = 0;         // training, all ranks
  double exposed_comm_ms_per_step = 0;  // communication that backward did not hide, on this rank
  bool is_best = false;
};

// "epoch: 007/500, time: 6.09s, learning_rate: 0.07, train_loss: 0.0010, train_acc: 0.8472,
// valid_loss: 0.0009, valid_acc: 0.8767": the recipe's line.
std::string epoch_line(const EpochReport& report);

struct RunSummary {
  double best_valid_acc = 0;
  double last_valid_acc = 0;
  std::int64_t epochs = 0;  // trained in the whole life of the run
  double seconds = 0;       // of this process
  double images_per_second = 0;
  double exposed_comm_ms_per_step = 0;
  int world_size = 1;
  std::string checkpoint;  // the best weights
  std::string last_checkpoint;
  std::string tensorboard;  // folder
  std::string stop_reason;  // "epochs", "early stopping", "requested", "finished before"
};

class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void on_progress(const Progress&) {}
  virtual void on_epoch(const EpochReport&) {}
  // A line about what became of the run's files, before it starts.
  virtual void on_notice(const std::string&) {}
};

}  // namespace lockstep::train
