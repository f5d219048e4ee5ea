#include "lockstep/train/agree.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/optim/early_stopping.h"
#include "lockstep/optim/reduce_lr_on_plateau.h"
#include "lockstep/optim/sgd.h"

namespace lockstep::train {
namespace {

using dist::ProcessGroup;
using dist::run_local_ranks;

TEST(Agree, VotesOfFourRanks) {
  run_local_ranks(4, [](ProcessGroup& group) {
    const Agreement agreement(group);
    const bool mine = group.rank() == 2;
    EXPECT_TRUE(agreement.decide(mine, Vote::kAny));
    EXPECT_FALSE(agreement.decide(mine, Vote::kAll));
    EXPECT_FALSE(agreement.decide(mine, Vote::kRank0));
    EXPECT_TRUE(agreement.decide(true, Vote::kAll));
    EXPECT_TRUE(agreement.decide(group.rank() == 0, Vote::kRank0));
    EXPECT_FALSE(agreement.decide(false, Vote::kAny));
  });
}

TEST(Agree, Numbers) {
  run_local_ranks(3, [](ProcessGroup& group) {
    const Agreement agreement(group);
    const double r = group.rank();
    EXPECT_EQ(agreement.sum(r).value(), 3);
    EXPECT_EQ(agreement.mean(r).value(), 1);
    EXPECT_EQ(agreement.rank0(r + 5).value(), 5);
    // fvcore#152 and its like: a mean of means would be another number.
    EXPECT_EQ(agreement.weighted_mean(r == 0 ? 4 : 1, r == 0 ? 1 : 0.5).value(), 2.5);
    EXPECT_TRUE(std::isnan(agreement.weighted_mean(1, 0).value()));
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(agreement.weighted_mean(r == 1 ? nan : 2, r == 1 ? 0 : 1).value(), 2);
  });
}

TEST(Agree, AloneThereIsNothingToAgreeOn) {
  const Agreement alone;
  EXPECT_TRUE(alone.decide(true, Vote::kAll));
  EXPECT_EQ(alone.mean(3).value(), 3);
  EXPECT_EQ(alone.require_same("x", 4).value(), 4);
}

// pytorch/pytorch#31771: ranks in different epochs would see overlapping shards.
TEST(Agree, DifferentValuesAreToldToEveryRank) {
  run_local_ranks(2, [](ProcessGroup& group) {
    const Agreement agreement(group);
    try {
      agreement.require_same("epoch", group.rank());
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "epoch differs: rank 0=0, rank 1=1");
    }
    EXPECT_EQ(agreement.require_same("epoch", 7).value(), 7);
  });
}

// rmchurch/disruptcnn#3: a plateau scheduler fed with each rank's own loss.
TEST(Agree, PlateauSeesTheSameLossOnEveryRank) {
  const std::vector<std::vector<double>> losses{{1, 0.9, 0.8}, {1, 1, 1}};
  run_local_ranks(2, [&](ProcessGroup& group) {
    const Agreement agreement(group);
    optim::PlateauOptions plateau;
    plateau.patience = 1;
    optim::SGD agreed_sgd({Variable(zeros({1}), true)}, optim::SGDOptions(0.1));
    optim::SGD own_sgd({Variable(zeros({1}), true)}, optim::SGDOptions(0.1));
    optim::ReduceLROnPlateau agreed(agreed_sgd, plateau), own(own_sgd, plateau);
    for (const double loss : losses[group.rank()]) {
      agreed.step(agreement.mean(loss).value());
      own.step(loss);
    }
    EXPECT_DOUBLE_EQ(agreed_sgd.param_groups()[0].lr(), 0.1);
    EXPECT_DOUBLE_EQ(own_sgd.param_groups()[0].lr(), group.rank() == 0 ? 0.1 : 0.01);
    // What has not been agreed on is refused where it is checked.
    EXPECT_THROW(agreement.require_same("validation loss", losses[group.rank()][2]), Error);
  });
}

// Lightning-AI/pytorch-lightning#379: one rank stops early, the others must leave with it.
TEST(Agree, AllRanksLeaveAfterTheSameEpoch) {
  for (const Vote vote : {Vote::kAny, Vote::kAll, Vote::kRank0}) {
    std::mutex mutex;
    std::vector<int> epochs;
    run_local_ranks(4, [&](ProcessGroup& group) {
      const Agreement agreement(group);
      optim::EarlyStoppingOptions options;
      options.patience = 2;
      optim::EarlyStopping stopping(options);
      int epoch = 0;
      for (; epoch < 6; ++epoch) {
        // Only rank 2's loss rises.
        const double loss = group.rank() == 2 ? 1 + epoch : 1.0 / (1 + epoch);
        if (agreement.decide(stopping.step(loss), vote)) break;
      }
      const std::lock_guard lock(mutex);
      epochs.push_back(epoch);
    });
    EXPECT_EQ(epochs, std::vector<int>(4, vote == Vote::kAny ? 2 : 6));
  }
}

TEST(Agree, VoteNames) {
  EXPECT_EQ(vote_from_name("any"), Vote::kAny);
  EXPECT_EQ(vote_from_name("rank0"), Vote::kRank0);
  EXPECT_THROW(vote_from_name("some"), Error);
}

TEST(Agreement, TextsThatDifferAreNamed) {
  dist::run_local_ranks(3, [](dist::ProcessGroup& group) {
    const Agreement agreement(group);
    agreement.require_same_text("--model", "mlp");
    agreement.require_same_text("--model", "");
    const std::string mine(static_cast<std::size_t>(group.rank()), 'x');
    try {
      agreement.require_same_text("--model", mine);
      ADD_FAILURE() << "different texts passed on rank " << group.rank();
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "--model differs: rank 0=, rank 1=x, rank 2=xx");
    }
  });
  EXPECT_NO_THROW(Agreement().require_same_text("--model", "mlp"));
}

}  // namespace
}  // namespace lockstep::train
