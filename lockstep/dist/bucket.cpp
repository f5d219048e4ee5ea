#include "lockstep/dist/bucket.h"

#include "lockstep/dist/process_group.h"

namespace lockstep::dist {

Bucket::Bucket(int index, std::vector<std::size_t> members,
               const std::vector<NamedParameter>& parameters, ProcessGroup& group)
    : index_(index), members_(std::move(members)) {
  std::int64_t count = 0;
  for (std::size_t i : members_) count += parameters[i].variable.numel();
  const Tensor& first = parameters[members_.front()].variable.data();
  flat_ = first.device().is_cuda() ? zeros({count}, {first.dtype(), first.device()})
                                   : group.allocate_tensor({count}, first.dtype());
  std::int64_t offset = 0;
  for (std::size_t i : members_) {
    const Tensor& value = parameters[i].variable.data();
    const Strides strides = value.is_dense() ? value.strides() : contiguous_strides(value.shape());
    views_.push_back(flat_.as_strided(value.shape(), strides, offset));
    offset += value.numel();
  }
}

}  // namespace lockstep::dist
