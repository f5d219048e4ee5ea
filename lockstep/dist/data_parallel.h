// What makes a module's parameters and buffers those of one model on all ranks. The wrapper that
// users hold is DistributedDataParallel (ddp.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/dist/coalesced_broadcast.h"
#include "lockstep/dist/reducer.h"

namespace lockstep::dist {

struct DdpOptions {
  // Of a bucket; the first bucket has 1 MiB unless a cap is given here.
  std::optional<double> bucket_cap_mb = std::nullopt;
  bool find_unused_parameters = false;
  // Rank 0's buffers (e.g. running statistics) go to all ranks with every synchronised training
  // step, beside its backward: after it they are the same everywhere, so evaluation needs no
  // collective and may run on any rank alone.
  bool broadcast_buffers = true;
  // Verify that all ranks have the same parameters, then take rank 0's values.
  bool init_sync = true;
  CommHook comm_hook = all_reduce_hook;
};

class DataParallel {
 public:
  // Collective.
  DataParallel(const std::vector<NamedParameter>& parameters, std::vector<Tensor> buffers,
               std::shared_ptr<ProcessGroup> group, const DdpOptions& options);

  void begin_forward(bool training);
  void end_forward(std::span<const Variable> outputs, bool training);

  // While one of these lives, backward only adds up gradients locally. It may enclose forward and
  // backward, as in PyTorch, or only one of them.
  class NoSync {
   public:
    explicit NoSync(DataParallel& owner);
    ~NoSync();
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    DataParallel& owner_;
  };

  // Collective: reduces gradients that were accumulated under NoSync; again without new ones does
  // nothing.
  void sync_gradients() { reducer_.sync_gradients(); }
  // Collective: rank `root`'s values on all ranks.
  void broadcast_parameters(int root = 0);
  void broadcast_buffers(int root = 0);

  // Ranks with different numbers of steps: all enter the mode together; from then on every
  // synchronised forward first counts the ranks that still have data.
  void begin_join(bool divide_by_initial_world_size);
  // Called by a rank that has no data left: takes part in the others' steps with zeros until all
  // are here, then takes the parameters of the rank that went on longest (the highest of several).
  void finish_join();

  Reducer& reducer() { return reducer_; }
  ProcessGroup& group() { return *group_; }

 private:
  bool synchronises(bool training) const;
  // Waits for rank 0's buffers, if they are on the way, and stores them.
  void take_buffers();
  // Collective; how many ranks still have data (this one counts if it has).
  int count_active(bool active);
  std::vector<Tensor> parameter_values() const;

  std::vector<NamedParameter> parameters_;
  std::vector<Tensor> buffers_;
  std::shared_ptr<ProcessGroup> group_;
  bool broadcast_buffers_;
  Reducer reducer_;
  std::unique_ptr<CoalescedBroadcast> buffers_on_the_way_;
  int no_sync_depth_ = 0;
  bool joining_ = false;
  bool divide_by_initial_ = true;
  std::int64_t steps_joined_ = 0;
};

}  // namespace lockstep::dist
