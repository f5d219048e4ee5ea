// One line that says how far an epoch is.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::train {

struct Progress {
  std::int64_t epoch = 0;
  std::int64_t epochs = 0;
  std::int64_t step = 0;
  std::int64_t steps = 0;
  double loss = 0;               // mean over the epoch so far
  double accuracy = 0;           // 0 to 1
  double images_per_second = 0;  // of all ranks
};

// "epoch 3/12  ━━━━━━────  45/90  loss 0.1234  acc 97.1 %  210 img/s", at most `columns` wide;
// parts that don't fit are left out from the right.
std::string progress_line(const Progress& progress, int columns);

}  // namespace lockstep::train
