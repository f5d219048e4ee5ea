// Many tensors from one rank to all, in few messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/core/tensor.h"
#include "lockstep/dist/work.h"

namespace lockstep::dist {

class ProcessGroup;

// Packs tensors of a kind into one block per dtype, broadcasts the blocks in the background, and
// unpacks on the ranks that are not the root when waited for: the tensors themselves are only
// touched by the thread that starts and waits.
class CoalescedBroadcast {
 public:
  // Collective; all ranks give tensors alike. The values are taken from root now.
  CoalescedBroadcast(std::vector<Tensor> tensors, int root, ProcessGroup& group);
  // Waits for the messages without unpacking if wait() was not called.
  ~CoalescedBroadcast();
  CoalescedBroadcast(const CoalescedBroadcast&) = delete;
  CoalescedBroadcast& operator=(const CoalescedBroadcast&) = delete;

  // Once this returns, the tensors hold root's values.
  void wait();

 private:
  struct Block {
    std::vector<Tensor> tensors;
    Tensor flat;
    std::shared_ptr<Work> work;
  };
  std::vector<Block> blocks_;
  bool is_root_;
};

}  // namespace lockstep::dist
