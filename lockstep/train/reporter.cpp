#include "lockstep/train/reporter.h"

#include "lockstep/core/check.h"
#include "lockstep/train/plain_nan.h"

namespace lockstep::train {

std::string epoch_line(const EpochReport& r) {
  return fmt::format(
      "epoch: {:03}/{}, time: {:.2f}s, learning_rate: {:.4g}, train_loss: {:.4f}, train_acc: "
      "{:.4f}, "
      "valid_loss: {:.4f}, valid_acc: {:.4f}",
      r.epoch, r.epochs, r.seconds, r.learning_rate, plain_nan(r.train_loss),
      plain_nan(r.train_accuracy), plain_nan(r.valid_loss), plain_nan(r.valid_accuracy));
}

}  // namespace lockstep::train
