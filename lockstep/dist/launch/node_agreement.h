// How the launchers of several nodes start, fail, restart and end a job together.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lockstep/dist/store.h"

namespace lockstep::dist {

// Why a round ended before all workers were through.
struct RoundFailure {
  int exit_code = 1;
  bool may_restart = true;  // false: the user stopped the job
  std::string cause;        // "rank 2 signal 9 (SIGKILL)"
};

// One per launcher. A job of one node asks nobody. A lost store counts as the failure of node 0.
class NodeAgreement {
 public:
  NodeAgreement(std::shared_ptr<Store> store, int nnodes, int node_rank, Duration timeout);

  // Blocks until the launchers of all nodes are in this round; Error if their figures differ,
  // TimeoutError names the nodes that are missing.
  void begin(int round, int nproc_per_node, int max_restarts);

  // The job's name: node 0's choice.
  std::string agree_job_id(const std::string& mine);

  // The first failure to be reported, which then is every node's.
  RoundFailure report(int round, const RoundFailure& failure);
  std::optional<RoundFailure> failure(int round);

  // This node's workers are all through; true once every node's are.
  void succeed(int round);
  bool all_succeeded(int round);

  // Last words. Node 0, which serves the store, stays until the others have left or show no sign of
  // life for `patience`.
  void leave(Duration patience);
  void show_life();

 private:
  std::shared_ptr<Store> store_;  // null: one node
  int nnodes_;
  int node_rank_;
  Duration timeout_;
  bool lost_ = false;
};

}  // namespace lockstep::dist
