// A bucket: the gradients that one all-reduce carries, as views of one block of symmetric memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/autograd/variable.h"
#include "lockstep/core/tensor.h"
#include "lockstep/dist/timeline.h"
#include "lockstep/dist/work.h"

namespace lockstep::dist {

class ProcessGroup;

struct NamedParameter {
  std::string name;
  Variable variable;
};

class Bucket {
 public:
  // Allocates the block from the group and lays the parameters' gradients into it one after the
  // other, each with its parameter's strides if those are dense.
  Bucket(int index, std::vector<std::size_t> members, const std::vector<NamedParameter>& parameters,
         ProcessGroup& group);

  int index() const { return index_; }
  const std::vector<std::size_t>& members() const { return members_; }
  // All gradients as one contiguous vector.
  const Tensor& flat() const { return flat_; }
  // The gradient of the i-th member.
  const Tensor& view(std::size_t i) const { return views_[i]; }

  // State of one backward pass, kept by the reducer.
  std::size_t pending = 0;  // members whose gradient is still to come
  std::shared_ptr<Work> work;
  BucketTiming timing;

 private:
  int index_;
  std::vector<std::size_t> members_;
  Tensor flat_;
  std::vector<Tensor> views_;
};

}  // namespace lockstep::dist
