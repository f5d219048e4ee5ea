#include "vgpu/runtime/operation.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <shared_mutex>

namespace vgpu {
namespace {

struct Table {
  std::shared_mutex mutex;
  std::deque<Operation> all;
};

Table& table() {
  static auto* the = new Table;  // streams may outlive static destruction
  return *the;
}

}  // namespace

void VectorClock::set(std::uint32_t stream, std::uint32_t count) {
  if (stream >= counts_.size()) counts_.resize(stream + 1, 0);
  counts_[stream] = count;
}

void VectorClock::merge(const VectorClock& other) {
  if (other.counts_.size() > counts_.size()) counts_.resize(other.counts_.size(), 0);
  for (std::size_t i = 0; i < other.counts_.size(); ++i)
    counts_[i] = std::max(counts_[i], other.counts_[i]);
}

std::uint32_t add_operation(Operation operation) {
  Table& t = table();
  std::unique_lock lock(t.mutex);
  t.all.push_back(std::move(operation));
  return static_cast<std::uint32_t>(t.all.size());
}

Operation operation_by_id(std::uint32_t id) {
  Table& t = table();
  std::shared_lock lock(t.mutex);
  return t.all[id - 1];
}

bool is_ordered(std::uint32_t earlier, const VectorClock& known) {
  Table& t = table();
  std::shared_lock lock(t.mutex);
  const Operation& operation = t.all[earlier - 1];
  return known.at(operation.stream) >= operation.number;
}

}  // namespace vgpu
