// Which output streams of which local ranks are meant by a flag such as `--tee 0:1,1:2`.
#pragma once

#include <map>
#include <string>

namespace lockstep::dist {

// torchrun's numbers; a bit each.
enum class Streams { kNone = 0, kStdout = 1, kStderr = 2, kBoth = 3 };

inline bool includes(Streams set, Streams one) {
  return (static_cast<int>(set) & static_cast<int>(one)) != 0;
}

// Per local rank; ranks that are not named have the default.
class StreamPlan {
 public:
  StreamPlan() = default;

  // "3": all ranks; "0:1,1:2": rank 0 stdout, rank 1 stderr, others none. `flag` names it in the
  // Error for anything else.
  static StreamPlan parse(const std::string& flag, const std::string& text);

  Streams of(int local_rank) const;
  bool any() const;
  int max_rank() const { return ranks_.empty() ? -1 : ranks_.rbegin()->first; }

 private:
  Streams all_ = Streams::kNone;
  std::map<int, Streams> ranks_;
};

}  // namespace lockstep::dist
