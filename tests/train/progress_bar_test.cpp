#include "lockstep/train/progress_bar.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/train/reporter.h"

namespace lockstep::train {
namespace {

TEST(ProgressLine, FullWidth) {
  const std::string line = progress_line({3, 12, 45, 90, 0.1234, 0.971, 210}, 100);
  EXPECT_EQ(line,
            "epoch 3/12  ━━━━━━━━━━━━────────────  45/90  loss 0.1234  acc 97.1 %  210 img/s");
}

TEST(ProgressLine, LeavesOutWhatDoesNotFit) {
  EXPECT_EQ(progress_line({3, 12, 45, 90, 0.1234, 0.971, 210}, 12), "epoch 3/12");
  EXPECT_EQ(progress_line({3, 12, 45, 90, 0.1234, 0.971, 210}, 5), "");
}

TEST(ProgressLine, NoStepsIsAnEmptyBar) {
  EXPECT_NE(progress_line({0, 1, 0, 0, 0, 0, 0}, 80).find("────"), std::string::npos);
}

// x86 gives a new NaN a sign, which "{}" would print.
TEST(Lines, NanHasNoSign) {
  const double nan = std::copysign(std::nan(""), -1);
  EXPECT_EQ(progress_line({3, 12, 45, 90, nan, nan, 210}, 100),
            "epoch 3/12  ━━━━━━━━━━━━────────────  45/90  loss nan  acc nan %  210 img/s");
  EpochReport report;
  report.train_loss = report.train_accuracy = report.valid_loss = report.valid_accuracy = nan;
  const std::string line = epoch_line(report);
  EXPECT_NE(line.find("valid_acc: nan"), std::string::npos) << line;
  EXPECT_EQ(line.find("-nan"), std::string::npos) << line;
}

TEST(EpochLine, IsTheRecipesLine) {
  EpochReport report;
  report.epoch = 7;
  report.epochs = 500;
  report.seconds = 6.09;
  report.learning_rate = 0.07;
  report.train_loss = 0.0010;
  report.train_accuracy = 0.8472;
  report.valid_loss = 0.0009;
  report.valid_accuracy = 0.8767;
  EXPECT_EQ(
      epoch_line(report),
      "epoch: 007/500, time: 6.09s, learning_rate: 0.07, train_loss: 0.0010, train_acc: 0.8472, "
      "valid_loss: 0.0009, valid_acc: 0.8767");
}

}  // namespace
}  // namespace lockstep::train
