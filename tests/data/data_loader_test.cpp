#include "lockstep/data/data_loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "lockstep/core/error.h"
#include "lockstep/data/distributed_sampler.h"
#include "lockstep/data/tensor_dataset.h"
#include "support/expect_close.h"
#include "support/message.h"

namespace lockstep::data {
namespace {

using Indices = std::vector<std::int64_t>;
using testing::message_of;

// Example i is the number i; counts its uses; one index may throw.
class Numbers : public Dataset {
 public:
  explicit Numbers(std::int64_t n) : n_(n) {}
  std::int64_t size() const override { return n_; }
  Example get(std::int64_t index) const override {
    check_index(index, n_, "numbers");
    gets_ += 1;
    if (index == faulty) throw std::runtime_error("bad " + std::to_string(index));
    if (delay.count() > 0) std::this_thread::sleep_for(delay * (index % 3));
    return {tensor<float>({static_cast<float>(index)}, {1}), tensor<std::int64_t>({index}, {})};
  }
  int gets() const { return gets_; }

  std::atomic<std::int64_t> faulty = -1;
  std::chrono::microseconds delay{0};

 private:
  std::int64_t n_;
  mutable std::atomic<int> gets_ = 0;
};

int threads_of_this_process() {
  const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

Indices rest_of(DataLoader& loader) {
  Indices ids;
  while (std::optional<Batch> batch = loader.next())
    ids.insert(ids.end(), batch->indices.begin(), batch->indices.end());
  return ids;
}

TEST(DataLoader, BatchesHoldTheirExamplesInOrderForAnyNumberOfWorkers) {
  const auto numbers = std::make_shared<Numbers>(23);
  numbers->delay = std::chrono::microseconds(300);
  for (const int workers : {0, 1, 2, 4, 16}) {
    SCOPED_TRACE(workers);
    DataLoader loader(numbers, std::make_shared<RandomSampler>(23, 5),
                      {.batch_size = 4, .workers = workers});
    for (int epoch = 0; epoch < 2; ++epoch) {
      const Indices order = shard_indices(23, 0, 1, epoch, 5);
      Indices seen;
      std::vector<std::int64_t> sizes;
      for (Batch& batch : loader) {
        ASSERT_EQ(batch.data.shape(), Shape({batch.size(), 1}));
        ASSERT_EQ(batch.target.shape(), Shape({batch.size()}));
        for (std::int64_t i = 0; i < batch.size(); ++i) {
          const std::int64_t id = batch.indices[static_cast<std::size_t>(i)];
          EXPECT_EQ(batch.data.data<float>()[i], static_cast<float>(id));
          EXPECT_EQ(batch.target.data<std::int64_t>()[i], id);
          seen.push_back(id);
        }
        sizes.push_back(batch.size());
      }
      EXPECT_EQ(seen, order);
      EXPECT_EQ(sizes, Indices({4, 4, 4, 4, 4, 3}));
    }
  }
}

TEST(DataLoader, DropLastLeavesTheSmallerBatchOut) {
  DataLoader loader(std::make_shared<Numbers>(23), std::make_shared<SequentialSampler>(23),
                    {.batch_size = 4, .drop_last = true, .workers = 2});
  EXPECT_EQ(loader.epoch_plan().steps, 5);
  EXPECT_EQ(rest_of(loader).size(), 20u);
}

TEST(DataLoader, AnEmptySetHasNoBatches) {
  for (const int workers : {0, 2}) {
    DataLoader loader(std::make_shared<Numbers>(0), std::make_shared<SequentialSampler>(0),
                      {.batch_size = 4, .workers = workers});
    EXPECT_TRUE(rest_of(loader).empty());
  }
}

TEST(DataLoader, WrongOptionsAreNamed) {
  const auto numbers = std::make_shared<Numbers>(4);
  const auto sampler = std::make_shared<SequentialSampler>(4);
  const auto message = [&](const DataLoaderOptions& options) {
    return message_of<Error>([&] { DataLoader(numbers, sampler, options); });
  };
  EXPECT_HOLDS(message({.batch_size = 0}), "batch_size must be at least 1, got 0");
  EXPECT_HOLDS(message({.workers = -1}), "workers must not be negative, got -1");
  EXPECT_HOLDS(message({.prefetch = 0}), "prefetch must be at least 1, got 0");
  EXPECT_HOLDS(message({.timeout = std::chrono::milliseconds(0)}), "timeout must be positive");
  EXPECT_ANY_THROW(DataLoader(nullptr, sampler));
  EXPECT_ANY_THROW(DataLoader(numbers, nullptr));
}

// https://github.com/microsoft/infinibatch/issues/17: a worker's exception must not hang the
// training.
TEST(DataLoader, AWorkersExceptionArrivesWithItsBatch) {
  for (const int workers : {0, 4}) {
    SCOPED_TRACE(workers);
    const auto numbers = std::make_shared<Numbers>(100);
    numbers->faulty = 37;
    auto loader =
        std::make_unique<DataLoader>(numbers, std::make_shared<SequentialSampler>(100),
                                     DataLoaderOptions{.batch_size = 10, .workers = workers});
    for (int i = 0; i < 3; ++i) {
      const std::optional<Batch> batch = loader->next();
      ASSERT_TRUE(batch);
      EXPECT_EQ(batch->indices.front(), 10 * i);
    }
    EXPECT_EQ(message_of<std::runtime_error>([&] { loader->next(); }), "bad 37");
    EXPECT_EQ(message_of<std::runtime_error>([&] { loader->next(); }), "bad 37");
    numbers->faulty = -1;
    loader->reset();
    EXPECT_EQ(rest_of(*loader).size(), 100u);

    numbers->faulty = 37;
    loader->reset();
    EXPECT_TRUE(loader->next());
    const auto start = std::chrono::steady_clock::now();
    loader.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  }
}

TEST(DataLoader, WithoutWorkersNoThreadIsStarted) {
  const int before = threads_of_this_process();
  DataLoader loader(std::make_shared<Numbers>(8), std::make_shared<SequentialSampler>(8),
                    {.batch_size = 2});
  loader.next();
  EXPECT_EQ(threads_of_this_process(), before);
}

TEST(DataLoader, WorkersEndWithThePass) {
  std::thread([] {}).join();  // with the first thread a sanitizer starts one of its own
  const int before = threads_of_this_process();
  DataLoader loader(std::make_shared<Numbers>(64), std::make_shared<SequentialSampler>(64),
                    {.batch_size = 2, .workers = 3});
  loader.next();
  EXPECT_EQ(threads_of_this_process(), before + 3);
  rest_of(loader);
  EXPECT_EQ(threads_of_this_process(), before);
}

TEST(DataLoader, PrefetchIsBounded) {
  const auto numbers = std::make_shared<Numbers>(1000);
  DataLoader loader(numbers, std::make_shared<SequentialSampler>(1000),
                    {.batch_size = 2, .workers = 2, .prefetch = 3});
  loader.next();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (numbers->gets() < 14 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(numbers->gets(), 14);  // one batch delivered and 2 * 3 ahead of it
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(numbers->gets(), 14);
}

class Stuck : public Numbers {
 public:
  using Numbers::Numbers;
  Example get(std::int64_t index) const override {
    while (!released) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Numbers::get(index);
  }
  std::atomic<bool> released = false;
};

TEST(DataLoader, AStuckWorkerIsATimeoutThatNamesTheBatch) {
  const auto stuck = std::make_shared<Stuck>(8);
  DataLoader loader(stuck, std::make_shared<SequentialSampler>(8),
                    {.batch_size = 2, .workers = 1, .timeout = std::chrono::milliseconds(50)});
  EXPECT_HOLDS(message_of<TimeoutError>([&] { loader.next(); }),
               "batch 0 was not ready after 50 ms");
  stuck->released = true;
}

// What a trainer does; stops after `stop` steps, if that comes, and says where.
struct TrainingRun {
  std::vector<Indices> steps;
  LoaderPosition position;
};

TrainingRun train(const LoaderPosition& from, bool shuffle, int workers, std::size_t stop) {
  constexpr std::int64_t kEpochs = 3;
  const auto sampler = std::make_shared<DistributedSampler>(
      64, 0, 1, DistributedSamplerOptions{.shuffle = shuffle, .seed = 9});
  DataLoader loader(std::make_shared<Numbers>(64), sampler, {.batch_size = 16, .workers = workers});
  loader.restore(from);
  TrainingRun run;
  for (std::int64_t epoch = loader.position().epoch; epoch < kEpochs; ++epoch) {
    sampler->set_epoch(epoch);
    for (Batch& batch : loader) {
      run.steps.push_back(batch.indices);
      run.position = loader.position();
      if (run.steps.size() == stop) return run;
    }
  }
  return run;
}

// https://github.com/verl-project/verl/issues/7401: a resumed run must neither skip nor repeat.
TEST(DataLoader, AResumedRunSeesWhatTheUninterruptedOneWouldHave) {
  for (const bool shuffle : {false, true})
    for (const int workers : {0, 4})
      for (const std::size_t stop : {1u, 4u, 6u, 8u, 11u, 12u}) {
        SCOPED_TRACE(::testing::Message() << shuffle << workers << " stopped after " << stop);
        const TrainingRun whole = train({}, shuffle, workers, 100);
        ASSERT_EQ(whole.steps.size(), 12u);
        const TrainingRun first = train({}, shuffle, workers, stop);
        const TrainingRun second = train(first.position, shuffle, workers, 100);
        EXPECT_EQ(second.steps.size(), 12 - stop);
        std::vector<Indices> both = first.steps;
        both.insert(both.end(), second.steps.begin(), second.steps.end());
        EXPECT_EQ(both, whole.steps);
      }
}

TEST(DataLoader, APositionIsThePlaceAfterTheLastDeliveredBatch) {
  const auto sampler = std::make_shared<RandomSampler>(64, 3);
  DataLoader loader(std::make_shared<Numbers>(64), sampler, {.batch_size = 16, .workers = 4});
  EXPECT_EQ(loader.position(), LoaderPosition({0, 0}));
  for (int i = 0; i < 4; ++i) loader.next();
  EXPECT_EQ(loader.position(), LoaderPosition({0, 4}));
  EXPECT_FALSE(loader.next());
  EXPECT_EQ(loader.position(), LoaderPosition({0, 4}));
  loader.next();
  EXPECT_EQ(loader.position(), LoaderPosition({1, 1}));
  loader.restore({0, 3});
  EXPECT_EQ(loader.position(), LoaderPosition({0, 3}));
  const Indices order = shard_indices(64, 0, 1, 0, 3);
  EXPECT_EQ(rest_of(loader), Indices(order.begin() + 48, order.end()));
}

TEST(DataLoader, APositionThatDoesNotFitIsRefused) {
  const auto sampler = std::make_shared<DistributedSampler>(64, 0, 1);
  DataLoader loader(std::make_shared<Numbers>(64), sampler, {.batch_size = 16});
  EXPECT_HOLDS(message_of<Error>([&] { loader.restore({0, 5}); }), "an epoch has 4 batches");
  EXPECT_ANY_THROW(loader.restore({-1, 0}));
  EXPECT_ANY_THROW(loader.restore({0, -1}));
  loader.restore({0, 2});
  sampler->set_epoch(1);
  EXPECT_HOLDS(message_of<Error>([&] { loader.reset(); }),
               "restored at batch 2 of epoch 0, but the pass is over epoch 1");
}

TEST(TensorDataset, BatchesAreRowsAndImagesChannelsLast) {
  Tensor images = empty({3, 2, 2, 2});
  for (int i = 0; i < 24; ++i) images.data<float>()[i] = static_cast<float>(i);
  const TensorDataset dataset(images, arange(3));
  const Indices wanted{2, 0, 2};
  const Batch batch = dataset.get_batch(wanted);
  EXPECT_TRUE(batch.data.is_contiguous(MemoryFormat::kChannelsLast));
  for (int i = 0; i < 3; ++i)
    EXPECT_SAME_BITS(batch.data.select(0, i),
                     images.select(0, wanted[static_cast<std::size_t>(i)]));
  EXPECT_SAME_BITS(batch.target, tensor<std::int64_t>({2, 0, 2}));
  EXPECT_SAME_BITS(dataset.get(1).data, images.select(0, 1));
  EXPECT_SAME_BITS(dataset.Dataset::get_batch(wanted).data, batch.data);
  EXPECT_EQ(dataset.get_batch({}).data.shape(), Shape({0, 2, 2, 2}));
  EXPECT_HOLDS(message_of<Error>([&] { dataset.get_batch(Indices{3}); }),
               "index 3 is outside 0..2");
  EXPECT_HOLDS(message_of<Error>([&] { TensorDataset(images, arange(4)); }),
               "3 rows but target has 4");
  EXPECT_ANY_THROW(TensorDataset(Tensor(), arange(4)));
}

TEST(GatherRows, WorksInEveryLayout) {
  Tensor x = arange(24).view({2, 3, 2, 2});
  for (const Tensor& view : {x, x.contiguous(MemoryFormat::kChannelsLast), x.transpose(2, 3),
                             x.slice(3, 0, 1), arange(12).view({4, 3}).t()}) {
    const Tensor rows = gather_rows(view, Indices{1, 0, 1});
    for (int i = 0; i < 3; ++i) EXPECT_SAME_BITS(rows.select(0, i), view.select(0, i == 1 ? 0 : 1));
  }
}

}  // namespace
}  // namespace lockstep::data
