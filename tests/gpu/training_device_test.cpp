// Training on a CUDA device: the same losses as on the CPU, step by step, alone and by two ranks.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "lockstep/autograd/ops/cross_entropy.h"
#include "lockstep/core/config.h"
#include "lockstep/core/current_stream.h"
#include "lockstep/core/device_guard.h"
#include "lockstep/core/random.h"
#include "lockstep/dist/ddp.h"
#include "lockstep/dist/local_store.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/models/make_model.h"
#include "lockstep/optim/sgd.h"
#include "lockstep/train/trainable.h"
#include "support/device.h"
#include "support/expect_close.h"

namespace lockstep {
namespace {

constexpr std::int64_t kBatch = 4, kSide = 16;

std::shared_ptr<train::Trainable> make_model(const std::string& name) {
  manual_seed(1);
  models::ModelOptions options;
  options.channels = 1;
  options.height = options.width = kSide;
  options.classes = 10;
  return std::make_shared<train::Trainable>(name, models::make_model(name, options));
}

struct Examples {
  Tensor images, labels;
};

Examples examples(int step, std::int64_t count) {
  Generator generator(100 + static_cast<std::uint64_t>(step));
  Examples e{randn({count, 1, kSide, kSide}, generator), empty({count}, {kI64})};
  for (std::int64_t i = 0; i < count; ++i) e.labels.data<std::int64_t>()[i] = (i + step) % 10;
  return e;
}

class TrainingOnDevice : public testing::DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    set_device_memory_caching(true);  // as users train
  }
};

// The losses of a net trained on the device.
std::vector<double> losses(const std::string& name, Device device, int steps) {
  const auto model = make_model(name);
  model->module().to(device);
  optim::SGD sgd(model->module().parameters(),
                 optim::SGDOptions(1e-3).momentum(0.9).nesterov(true));
  std::vector<double> all;
  for (int step = 0; step < steps; ++step) {
    const Examples e = examples(step, kBatch);
    const Variable loss =
        cross_entropy(model->forward(Variable(e.images.to(device))), e.labels.to(device));
    sgd.zero_grad();
    loss.backward();
    sgd.step();
    all.push_back(loss.item());
  }
  return all;
}

TEST_P(TrainingOnDevice, TheSameLossesAsOnTheCpu) {
  if (device().is_cpu()) GTEST_SKIP() << "compared with the CPU itself";
  struct Run {
    const char* name;
    int steps;
  };
  // Toy_Net takes seconds for a step on the virtual GPU.
  for (const Run& run : {Run{"small_net", 30}, Run{"toy_net", 3}}) {
    const std::vector<double> here = losses(run.name, kCpu, run.steps);
    const std::vector<double> there = losses(run.name, device(), run.steps);
    for (std::size_t step = 0; step < here.size(); ++step)
      EXPECT_NEAR(there[step], here[step], 1e-4 * here[step]) << run.name << ", step " << step;
  }
}

LOCKSTEP_ON_ALL_DEVICES(TrainingOnDevice);

// Ranks are threads, each with a device of its own.
void on_devices(int ranks, const std::function<void(dist::ProcessGroup&, Device)>& body,
                std::chrono::nanoseconds timeout = std::chrono::seconds(60)) {
  const auto store = std::make_shared<dist::LocalStore>();
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        dist::ProcessGroupOptions options;
        options.device = cuda_device(rank);
        options.host_kind = "local";
        options.timeout = timeout;
        const DeviceGuard guard(options.device);
        const auto group = dist::make_process_group("nccl", store, rank, ranks, options);
        body(*group, options.device);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

class TwoDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kHasNccl) GTEST_SKIP() << "this build has no NCCL";
    if (cuda_device_count() < 2) GTEST_SKIP() << "there are not two CUDA devices";
  }
};

// Values of all parameters, one after the other.
Tensor values_of(const train::Trainable& model) {
  std::vector<Tensor> parts;
  std::int64_t count = 0;
  for (const auto& [name, variable] : model.named_parameters()) {
    parts.push_back(variable.data().to(kCpu).contiguous());
    count += parts.back().numel();
  }
  const Tensor all = empty({count});
  std::int64_t at = 0;
  for (const Tensor& part : parts) {
    copy_elements(all.slice(0, at, at + part.numel()), part.view({part.numel()}));
    at += part.numel();
  }
  return all;
}

// Two ranks with half a batch each train as one with all of it; no step but its read-out of the
// loss waits for the device, or asks it for memory once everything has been there.
TEST_F(TwoDevices, TrainAsOneRankWithBothBatches) {
  constexpr int kFewSteps = 8;
  Tensor results[2];
  on_devices(2, [&](dist::ProcessGroup& group, Device device) {
    const auto model = make_model("small_net");
    model->module().to(device);
    const std::shared_ptr<dist::ProcessGroup> shared(&group, [](auto*) {});
    dist::DdpOptions options;
    options.bucket_cap_mb = 0.02;  // several buckets
    dist::DistributedDataParallel<std::shared_ptr<train::Trainable>> ddp(model, shared, options);
    optim::SGD sgd(model->module().parameters(), optim::SGDOptions(1e-3).momentum(0.9));
    std::vector<Examples> mine;
    for (int step = 0; step < kFewSteps; ++step) {
      const Examples e = examples(step, 2 * kBatch);
      const std::int64_t from = group.rank() * kBatch;
      mine.push_back({e.images.slice(0, from, from + kBatch).contiguous().to(device),
                      e.labels.slice(0, from, from + kBatch).contiguous().to(device)});
    }
    std::uint64_t waits = 0, asked = 0, collectives = 0;
    for (int step = 0; step < kFewSteps; ++step) {
      if (step == 3) {  // buckets are rebuilt after the first
        group.barrier()->wait();
        waits = host_synchronizations();
        asked = device_memory_stats(device).system_allocations;
        collectives = group.traffic().collectives;
      }
      const Examples& e = mine[static_cast<std::size_t>(step)];
      const Variable loss = cross_entropy(ddp(Variable(e.images)), e.labels);
      sgd.zero_grad();
      loss.backward();
      sgd.step();
    }
    EXPECT_EQ(group.traffic().collectives - collectives,
              static_cast<std::uint64_t>(kFewSteps - 3) * ddp.reducer().buckets().size());
    EXPECT_GT(ddp.reducer().buckets().size(), 1u);
    group.barrier()->wait();
    EXPECT_EQ(host_synchronizations(), waits);
    EXPECT_EQ(device_memory_stats(device).system_allocations, asked);
    group.barrier()->wait();
    results[group.rank()] = values_of(*model);
    EXPECT_GE(ddp.reducer().timing().exposed_ms(), 0);
  });
  EXPECT_SAME_BITS(results[0], results[1]);

  const auto model = make_model("small_net");
  optim::SGD sgd(model->module().parameters(), optim::SGDOptions(1e-3).momentum(0.9));
  for (int step = 0; step < kFewSteps; ++step) {
    const Examples e = examples(step, 2 * kBatch);
    const Variable loss = cross_entropy(model->forward(Variable(e.images)), e.labels);
    sgd.zero_grad();
    loss.backward();
    sgd.step();
  }
  EXPECT_CLOSE(results[0], values_of(*model), 1e-5, 1e-6);
}

TEST_F(TwoDevices, EveryCollective) {
  on_devices(2, [&](dist::ProcessGroup& group, Device device) {
    using dist::span_of;
    const int rank = group.rank();
    for (const DType dtype : {kF32, kF64, kF16, kBF16, kI32, kI64, kU8}) {
      const auto filled = [&](std::int64_t n, double value) {
        return full({n}, value, {dtype, device});
      };
      const auto expect = [&](const Tensor& got, const Tensor& want) {
        EXPECT_SAME_BITS(got.to(kCpu), want.to(kCpu));
      };
      const Tensor x = filled(5, rank + 1);
      group.all_reduce(span_of(x))->wait();
      expect(x, filled(5, 3));
      const Tensor largest = filled(5, rank + 1);
      group.all_reduce(span_of(largest), dist::ReduceOp::kMax)->wait();
      expect(largest, filled(5, 2));
      const Tensor product = filled(5, rank + 2);
      group.all_reduce(span_of(product), dist::ReduceOp::kProduct)->wait();
      expect(product, filled(5, 6));
      const Tensor from_one = filled(3, rank);
      group.broadcast(span_of(from_one), 1)->wait();
      expect(from_one, filled(3, 1));
      const Tensor mine = filled(2, rank), all = filled(4, 9);
      group.all_gather(span_of(mine), span_of(all))->wait();
      expect(all.slice(0, 0, 2), filled(2, 0));
      expect(all.slice(0, 2, 4), filled(2, 1));
      const Tensor wide = filled(4, rank + 1), part = filled(2, 0);
      group.reduce_scatter(span_of(wide), span_of(part))->wait();
      expect(part, filled(2, 3));
      const Tensor message = filled(4, 7);
      const auto work = rank == 0 ? group.send(span_of(message), 1) : [&] {
        zero_(message);
        return group.recv(span_of(message), 0);
      }();
      work->wait();
      expect(message, filled(4, 7));
    }
    // No elements, no address; still the device's.
    const Tensor none = empty({0}, {kF32, device});
    group.all_reduce(span_of(none))->wait();
    group.broadcast(span_of(none), 1)->wait();
    // The host's memory goes another way.
    std::int64_t number = rank + 1;
    group.all_reduce_sync(span_of(&number, 1));
    EXPECT_EQ(number, 3);
  });
}

TEST_F(TwoDevices, AMissingRankIsATimeoutThatNamesTheCall) {
  const auto run = [] {
    on_devices(
        2,
        [](dist::ProcessGroup& group, Device device) {
          const Tensor x = full({100}, 1, {kF32, device});
          if (group.rank() == 0) group.all_reduce(dist::span_of(x), dist::ReduceOp::kSum, {3, 1});
          // The watch of rank 0 ends it; rank 1 learns of it through the host's group.
          const auto start = std::chrono::steady_clock::now();
          while (std::chrono::steady_clock::now() - start < std::chrono::seconds(20)) {
            std::int64_t number = 1;
            if (group.rank() == 1)
              group.all_reduce_sync(dist::span_of(&number, 1));
            else
              group.all_reduce(dist::span_of(x))->wait();
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
        },
        std::chrono::milliseconds(500));
  };
  try {
    run();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("all_reduce sum of 100 f32 (step 3, bucket 1)"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(TwoDevices, MemoryOfAnotherPlaceIsRefused) {
  on_devices(2, [](dist::ProcessGroup& group, Device device) {
    const Tensor elsewhere = zeros({3}, {kF32, cuda_device(1 - device.index)});
    EXPECT_THROW(group.all_reduce(dist::span_of(elsewhere)), Error);
    const Tensor here = zeros({3}, {kF32, device}), on_host = zeros({3});
    EXPECT_THROW(group.all_reduce(dist::span_of(on_host), dist::span_of(here)), Error);
  });
  dist::run_local_ranks(1, [](dist::ProcessGroup& group) {
    const Tensor there = zeros({3}, {kF32, cuda_device()});
    EXPECT_THROW(group.all_reduce(dist::span_of(there)), Error);
  });
}

}  // namespace
}  // namespace lockstep
