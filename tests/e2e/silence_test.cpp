// A guest is silent unless it is asked to speak, and then it speaks where it was told.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "lockstep/autograd/ops/cross_entropy.h"
#include "lockstep/autograd/ops/matmul.h"
#include "lockstep/core/log.h"
#include "lockstep/core/random.h"
#include "lockstep/core/safetensors.h"
#include "lockstep/data/distributed_sampler.h"
#include "lockstep/models/mlp.h"
#include "lockstep/optim/sgd.h"
#include "support/temp_folder.h"

namespace lockstep::testing {
namespace {

// What reaches the descriptors 1 and 2 while it lives.
class Capture {
 public:
  Capture() {
    std::fflush(nullptr);
    for (int fd : {STDOUT_FILENO, STDERR_FILENO}) {
      before_[fd] = ::dup(fd);
      const int file = ::open((folder_ / std::to_string(fd)).c_str(), O_CREAT | O_WRONLY, 0600);
      ::dup2(file, fd);
      ::close(file);
    }
  }
  // The text of both, and an end to the capture.
  std::string finish() {
    std::fflush(nullptr);
    for (int fd : {STDOUT_FILENO, STDERR_FILENO}) {
      ::dup2(before_[fd], fd);
      ::close(before_[fd]);
    }
    return read_bytes(folder_ / "1") + read_bytes(folder_ / "2");
  }

 private:
  TempFolder folder_;
  int before_[3] = {};
};

void train_save_load_and_fail(const std::string& path) {
  models::Mlp model(std::vector<std::int64_t>{8, 16, 3});
  optim::SGD optimizer(model->parameters(), optim::SGDOptions(0.1).momentum(0.9));
  Generator generator(1);
  const Tensor x = randn({6, 8}, generator), target = tensor<std::int64_t>({0, 1, 2, 0, 1, 2});
  for (int step = 0; step < 10; ++step) {
    optimizer.zero_grad();
    cross_entropy(model->forward(x), target).backward();
    optimizer.step();
  }
  save_safetensors(path, model->state_dict());
  model->load_state_dict(load_safetensors(path));
  EXPECT_THROW(model->forward(ones({6, 7})), Error);
  EXPECT_THROW(load_safetensors(path + ".absent"), Error);
}

// ggml-org/whisper.cpp#504
TEST(Silence, NothingIsPrinted) {
  const TempFolder folder;
  Capture capture;
  train_save_load_and_fail(folder / "model.safetensors");
  EXPECT_EQ(capture.finish(), "");
}

void warn_once() {
  data::DistributedSampler sampler(8, 0, 2);
  for (int pass = 0; pass < 3; ++pass) sampler.indices();
}

// ggml-org/ggml#930
TEST(Silence, TheSinkGetsEveryRecordAndStderrNone) {
  std::vector<std::pair<LogLevel, std::string>> records;
  set_log_sink([&](LogLevel level, std::string_view message) {
    records.emplace_back(level, std::string(message));
  });
  Capture capture;
  warn_once();
  log(LogLevel::kError, "an error");
  EXPECT_EQ(capture.finish(), "");
  set_log_sink({});
  warn_once();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].first, LogLevel::kWarning);
  EXPECT_NE(records[0].second.find("set_epoch"), std::string::npos) << records[0].second;
  EXPECT_EQ(records[1], std::pair(LogLevel::kError, std::string("an error")));
}

}  // namespace
}  // namespace lockstep::testing
