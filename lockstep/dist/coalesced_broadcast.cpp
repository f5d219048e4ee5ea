#include "lockstep/dist/coalesced_broadcast.h"

#include <map>
#include <string>

#include "lockstep/dist/process_group.h"

namespace lockstep::dist {
namespace {

// f(tensor, its part of the block) for each tensor.
template <class F>
void for_each_part(const std::vector<Tensor>& tensors, const Tensor& flat, F&& f) {
  std::int64_t offset = 0;
  for (const Tensor& t : tensors) {
    f(t, flat.slice(0, offset, offset + t.numel()).view(t.shape()));
    offset += t.numel();
  }
}

}  // namespace

CoalescedBroadcast::CoalescedBroadcast(std::vector<Tensor> tensors, int root, ProcessGroup& group)
    : is_root_(group.rank() == root) {
  std::map<std::pair<DType, std::string>, std::vector<Tensor>> alike;
  for (Tensor& t : tensors) alike[{t.dtype(), t.device().str()}].push_back(std::move(t));
  for (auto& [kind, list] : alike) {
    std::int64_t count = 0;
    for (const Tensor& t : list) count += t.numel();
    const Tensor flat = empty({count}, {list[0].dtype(), list[0].device()});
    Block block{std::move(list), flat, nullptr};
    if (is_root_)
      for_each_part(block.tensors, block.flat,
                    [](const Tensor& t, const Tensor& part) { copy_elements(part, t); });
    block.work = group.broadcast(span_of(block.flat), root);
    blocks_.push_back(std::move(block));
  }
}

CoalescedBroadcast::~CoalescedBroadcast() {
  for (Block& block : blocks_) {
    try {
      block.work->wait();
    } catch (...) {
      // The group tells whoever uses it next.
    }
  }
}

void CoalescedBroadcast::wait() {
  for (Block& block : blocks_) {
    block.work->wait();
    if (!is_root_)
      for_each_part(block.tensors, block.flat,
                    [](const Tensor& t, const Tensor& part) { copy_elements(t, part); });
  }
  blocks_.clear();
}

}  // namespace lockstep::dist
