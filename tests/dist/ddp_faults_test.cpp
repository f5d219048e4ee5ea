#include <gtest/gtest.h>

#include <chrono>
#include <mutex>

#include "dist/linear_model.h"
#include "lockstep/dist/verify_parameters.h"

namespace lockstep::testing {
namespace {

using dist::ProcessGroup;
using dist::run_local_ranks;

// What every rank was told.
class Errors {
 public:
  void add(int rank, const std::string& what) {
    std::lock_guard lock(mutex_);
    by_rank_[rank] = what;
  }
  const std::string& of(int rank) { return by_rank_[rank]; }

 private:
  std::mutex mutex_;
  std::map<int, std::string> by_rank_;
};

void expect_both_refuse(const std::function<ModelPtr(int rank)>& make,
                        const std::vector<std::string>& wanted) {
  Errors errors;
  const auto start = std::chrono::steady_clock::now();
  run_local_ranks(2, [&](ProcessGroup& group) {
    ModelPtr model = make(group.rank());
    try {
      Ddp ddp(model, borrow(group));
    } catch (const Error& e) {
      errors.add(group.rank(), e.what());
    }
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  for (int rank = 0; rank < 2; ++rank)
    for (const std::string& part : wanted)
      EXPECT_NE(errors.of(rank).find(part), std::string::npos)
          << "rank " << rank << " was told: " << errors.of(rank);
}

std::vector<std::string> numbered(int n) {
  std::vector<std::string> names;
  for (int i = 0; i < n; ++i) names.push_back(std::string("p").append(std::to_string(i)));
  return names;
}

// pytorch/pytorch#73547, #76449
TEST(DdpFaults, DifferentCountsAreToldToAllRanks) {
  expect_both_refuse(
      [](int rank) { return std::make_shared<LinearModel>(numbered(rank == 0 ? 128 : 0)); },
      {"rank 0 has 128 trainable parameters", "rank 1 has 0"});
}

TEST(DdpFaults, OneShapeDiffers) {
  expect_both_refuse(
      [](int rank) {
        auto model = std::make_shared<LinearModel>(numbered(3), 4);
        if (rank == 1) (*model)[1] = Variable(zeros({2, 2}), true);
        return model;
      },
      {"p1", "(4,)", "(2, 2)"});
}

TEST(DdpFaults, OrderOfNamesDiffers) {
  expect_both_refuse(
      [](int rank) {
        return std::make_shared<LinearModel>(rank == 0 ? std::vector<std::string>{"a", "b"}
                                                       : std::vector<std::string>{"b", "a"});
      },
      {"parameter 0", "'a", "'b"});
}

TEST(DdpFaults, DifferentDtypes) {
  expect_both_refuse(
      [](int rank) {
        auto model = std::make_shared<LinearModel>(numbered(1));
        if (rank == 1) (*model)[0] = Variable(zeros({1}, {.dtype = kF64}), true);
        return model;
      },
      {"f32", "f64"});
}

TEST(DdpFaults, NoTrainableParameterAtAll) {
  expect_both_refuse([](int) { return std::make_shared<LinearModel>(numbered(0)); },
                     {"no parameter of the module requires a gradient"});
}

TEST(DdpFaults, DriftedValuesNameTheRank) {
  Errors errors;
  run_local_ranks(3, [&](ProcessGroup& group) {
    auto model = std::make_shared<LinearModel>(numbered(2));
    Ddp ddp(model, borrow(group));
    if (group.rank() == 2) (*model)[1].data().data<float>()[0] += 1;
    try {
      dist::verify_same_values({{"p0", (*model)[0]}, {"p1", (*model)[1]}}, group);
    } catch (const Error& e) {
      errors.add(group.rank(), e.what());
    }
  });
  for (int r = 0; r < 3; ++r)
    EXPECT_NE(errors.of(r).find("rank 2"), std::string::npos) << errors.of(r);
}

// pytorch/pytorch#33148: rank 0 has 6 batches, rank 1 has 5.
TEST(DdpFaults, ARankThatRunsOutOfBatchesIsNamed) {
  Errors errors;
  const auto start = std::chrono::steady_clock::now();
  try {
    run_local_ranks(2,
                    [&](ProcessGroup& group) {
                      auto model = std::make_shared<LinearModel>(numbered(1));
                      Ddp ddp(model, borrow(group), {.broadcast_buffers = false});
                      const int batches = group.rank() == 0 ? 6 : 5;
                      try {
                        for (int i = 0; i < batches; ++i) {
                          model->zero_grad();
                          backward(ddp(std::vector<float>{1}));
                        }
                      } catch (const CommError& e) {
                        errors.add(group.rank(), e.what());
                        throw;
                      }
                      if (group.rank() == 1)
                        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
                    },
                    {.timeout = std::chrono::seconds(1)});
    FAIL() << "rank 0 was not stopped";
  } catch (const CommError&) {
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  // Steps count from 0 in tags: the sixth is step 5.
  EXPECT_NE(errors.of(0).find("step 5"), std::string::npos) << errors.of(0);
  EXPECT_NE(errors.of(0).find("bucket 0"), std::string::npos) << errors.of(0);
  EXPECT_NE(errors.of(0).find("rank"), std::string::npos) << errors.of(0);
  EXPECT_NE(errors.of(0).find('1'), std::string::npos) << errors.of(0);
}

// The same with join: rank 1's share of the sixth step is zero.
TEST(DdpJoin, UnevenInputsDivideByAllOrByActiveRanks) {
  for (const bool by_initial : {true, false}) {
    run_local_ranks(2, [&](ProcessGroup& group) {
      auto model = std::make_shared<LinearModel>(numbered(2), 3);
      Ddp ddp(model, borrow(group));
      const int batches = group.rank() == 0 ? 6 : 5;
      float last = 0;
      ddp.join(
          [&] {
            for (int i = 0; i < batches; ++i) {
              model->zero_grad();
              backward(ddp(std::vector<float>{8, 2}));
              last = model->grad(0);
              model->step(0.5f);
            }
          },
          by_initial);
      if (group.rank() == 0) {
        EXPECT_EQ(last, by_initial ? 4 : 8);
      } else {
        EXPECT_EQ(last, 8);
      }
      dist::verify_same_values({{"p0", (*model)[0]}, {"p1", (*model)[1]}}, group);
      EXPECT_EQ(model->value(0), 1 - 0.5f * (5 * 8 + (by_initial ? 4 : 8)));
      // Afterwards everything is as before.
      model->zero_grad();
      backward(ddp(std::vector<float>{2.f + 2.f * static_cast<float>(group.rank()), 1}));
      EXPECT_EQ(model->grad(0), 3);
    });
  }
}

TEST(DdpJoin, ARankWithoutAnyBatchTakesTheOthersModel) {
  for (const int idle : {0, 1, 2})
    run_local_ranks(3, [&](ProcessGroup& group) {
      auto model = std::make_shared<LinearModel>(numbered(2));
      Ddp ddp(model, borrow(group));
      ddp.join(
          [&] {
            if (group.rank() == idle) return;
            for (int i = 0; i < 3; ++i) {
              model->zero_grad();
              backward(ddp(std::vector<float>{4, 4}));
              model->step(1);
            }
          },
          false);
      EXPECT_EQ(model->value(0), 1 - 12);
      EXPECT_EQ(model->value(1), 2 - 12);
    });
}

}  // namespace
}  // namespace lockstep::testing
