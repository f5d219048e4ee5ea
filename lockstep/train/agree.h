// Decisions that every rank takes alike. What depends on data that only one rank has seen (a loss,
// a signal, a NaN) must go through here, or ranks part and wait for each other in vain.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::dist {
class ProcessGroup;
}

namespace lockstep::train {

// How votes become a decision.
enum class Vote { kAny, kAll, kRank0 };

// "any", "all", "rank0"; throws Error naming the three otherwise.
Vote vote_from_name(std::string_view name);

// A number that all ranks hold with the same bits. Only agreement makes one, so that what consumes
// it (a plateau scheduler, early stopping) can't be fed a rank's own value by mistake.
class Agreed {
 public:
  double value() const { return value_; }

 private:
  friend class Agreement;
  explicit Agreed(double value) : value_(value) {}
  double value_;
};

// All functions are collective: every rank calls them in the same order.
class Agreement {
 public:
  // Of one process, where there is nothing to agree on.
  Agreement() = default;
  explicit Agreement(dist::ProcessGroup& group) : group_(&group) {}

  bool decide(bool mine, Vote vote) const;
  // Sum, plain mean and rank 0's value; f64, in the group's fixed order.
  Agreed sum(double mine) const;
  Agreed mean(double mine) const;
  Agreed rank0(double mine) const;
  // Sum of mine * weight over sum of weight; NaN if the weights sum to 0.
  Agreed weighted_mean(double mine, double weight) const;
  // A value that should be the same everywhere already; throws Error on every rank naming the
  // values where it is not ("epoch differs: rank 0=0, rank 1=1").
  Agreed require_same(std::string_view what, double mine) const;
  void require_same_text(std::string_view what, const std::string& mine) const;

  int rank() const;
  int size() const;

 private:
  dist::ProcessGroup* group_ = nullptr;
};

}  // namespace lockstep::train
