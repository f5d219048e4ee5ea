// Operations and what orders them: each kernel, copy or fill is one, with a vector clock over the
// streams. What two operations do to one place is a race unless one's clock holds the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu {

// By stream number: how many of its operations are known to be over.
class VectorClock {
 public:
  std::uint32_t at(std::uint32_t stream) const {
    return stream < counts_.size() ? counts_[stream] : 0;
  }
  void set(std::uint32_t stream, std::uint32_t count);
  void merge(const VectorClock& other);

 private:
  std::vector<std::uint32_t> counts_;
};

struct Operation {
  std::string name;  // of the kernel, or "memcpy", …
  std::uint32_t stream = 0;
  std::uint32_t number = 0;  // within the stream, from 1
  VectorClock known;         // what is over before it begins, itself included
};

// Never forgets: granules name operations by id. Thread-safe. Ids begin at 1.
std::uint32_t add_operation(Operation operation);
Operation operation_by_id(std::uint32_t id);

// Whether operation `earlier` is over before one with the clock `known` begins.
bool is_ordered(std::uint32_t earlier, const VectorClock& known);

}  // namespace vgpu
