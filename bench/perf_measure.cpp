#include "bench/perf_measure.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "bench/timed_calls.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/dist/reduce.h"

namespace lockstep::bench {
namespace {

using dist::ConstSpan;
using dist::ProcessGroup;
using dist::ReduceOp;
using dist::Span;

// Small calls are timed in lots, for the clock costs as much as one.
int calls_per_sample(std::int64_t bytes) {
  if (bytes <= (4 << 10)) return 200;
  if (bytes <= (1 << 20)) return 20;
  return bytes <= (16 << 20) ? 5 : 1;
}

// Small integers, exact in every type under every reduction that is checked.
int fresh_value(int rank, std::int64_t i) {
  return static_cast<int>((i * 7 + rank * 3 + i / 64) % 3);
}

int expected_value(ReduceOp op, int ranks, std::int64_t i) {
  int value = fresh_value(0, i);
  for (int r = 1; r < ranks; ++r) {
    const int next = fresh_value(r, i);
    if (op == ReduceOp::kSum) value += next;
    if (op == ReduceOp::kProduct) value *= next;
    if (op == ReduceOp::kMin) value = std::min(value, next);
    if (op == ReduceOp::kMax) value = std::max(value, next);
  }
  return value;
}

template <class V>
std::vector<V> gather(ProcessGroup& group, V value) {
  std::vector<V> all(static_cast<std::size_t>(group.size()));
  group.all_gather(dist::span_of(&value, 1), dist::span_of(all))->wait();
  return all;
}

class Sweep {
 public:
  Sweep(ProcessGroup& group, const PerfOptions& options, SharedArena arena)
      : group_(group), options_(options), arena_(arena) {
    const auto bytes = static_cast<std::size_t>(options.end);
    const auto make = [&] {
      return options.plain_memory ? std::make_shared<Storage>(bytes) : group.allocate(bytes);
    };
    send_ = make();
    receive_ = make();
  }

  PerfResult run(std::int64_t bytes, bool in_place) {
    PerfResult result;
    result.bytes = bytes;
    result.count = bytes / static_cast<std::int64_t>(dtype_size(options_.dtype));
    result.in_place = in_place;
    const ConstSpan input{send_->data(), result.count, options_.dtype};
    const Span output{in_place ? send_->data() : receive_->data(), result.count, options_.dtype};
    // Zeros stay zeros, however often they are summed in place.
    if (bytes > 0) std::memset(send_->data(), 0, static_cast<std::size_t>(bytes));
    std::vector<double> samples, limits;
    const int calls = calls_per_sample(bytes);
    const int repetitions = options_.warm_up + options_.iterations;
    for (int i = 0; i < repetitions; ++i) {
      line_up();
      samples.push_back(time_sample(input, output, in_place, calls) / calls);
    }
    // Not in turns: whichever memory comes into the last-level cache first would stay there.
    for (int i = 0; in_place && has_limit(bytes) && i < repetitions; ++i)
      limits.push_back(time_limit(bytes));
    result.samples = summarize(slowest_by_sample(samples), options_.warm_up);
    result.ranks = across_ranks(gather(group_, summarize(samples, options_.warm_up).median));
    if (!limits.empty()) {
      const double seconds =
          across_ranks(gather(group_, summarize(limits, options_.warm_up).median)).max;
      result.limit = bus_bandwidth(Traffic::kAllReduce, bytes, seconds, group_.size());
    }
    if (options_.check) result.wrong = check(input, output);
    return result;
  }

 private:
  // A barrier whose ends lie close together: no thread has to be woken.
  void line_up() {
    std::int32_t nothing = 0;
    group_.all_reduce_sync(dist::span_of(&nothing, 1));
  }

  double time_sample(ConstSpan input, Span output, bool in_place, int calls) {
    if (options_.asynchronous)
      return time_until_done(calls, [&] { return group_.all_reduce(input, output, options_.op); });
    if (in_place) return time_calls(calls, [&] { group_.all_reduce_sync(output, options_.op); });
    return time_calls(calls, [&] { group_.all_reduce_sync(input, output, options_.op); });
  }

  bool has_limit(std::int64_t bytes) const {
    return group_.size() == 2 && bytes >= (64 << 10) &&
           arena_.bytes >= 2 * static_cast<std::size_t>(bytes);
  }

  // Each rank sums its half of two buffers into both: the work of an all-reduce without its waits.
  double time_limit(std::int64_t bytes) {
    auto* first = static_cast<char*>(arena_.data);
    char* second = first + arena_.bytes / 2;
    const auto item = static_cast<std::int64_t>(dtype_size(options_.dtype));
    const std::int64_t half = bytes / item / 2;
    const std::int64_t offset = group_.rank() * half * item;
    const void* inputs[] = {first + offset, second + offset};
    void* outputs[] = {first + offset, second + offset};
    const int calls = calls_per_sample(bytes);
    line_up();
    return time_calls(
               calls,
               [&] { dist::reduce_tree(options_.op, options_.dtype, inputs, outputs, half); }) /
           calls;
  }

  std::vector<double> slowest_by_sample(const std::vector<double>& samples) {
    std::vector<double> slowest = samples;
    group_.all_reduce(dist::span_of(slowest), ReduceOp::kMax)->wait();
    return slowest;
  }

  // On data of its own: what the timed calls leave behind proves nothing.
  std::vector<std::int64_t> check(ConstSpan input, Span output) {
    std::int64_t wrong = 0;
    visit_dtype(options_.dtype, [&]<class T>() {
      auto* in = static_cast<T*>(const_cast<void*>(input.data));
      for (std::int64_t i = 0; i < input.count; ++i)
        in[i] = static_cast<T>(static_cast<float>(fresh_value(group_.rank(), i)));
      group_.all_reduce(input, output, options_.op)->wait();
      auto* out = static_cast<T*>(output.data);
      if (options_.inject_error == group_.rank() && output.count > 0)
        out[0] = static_cast<T>(static_cast<float>(out[0]) + 1.0f);
      for (std::int64_t i = 0; i < output.count; ++i)
        wrong +=
            !(out[i] ==
              static_cast<T>(static_cast<float>(expected_value(options_.op, group_.size(), i))));
    });
    return gather(group_, wrong);
  }

  ProcessGroup& group_;
  const PerfOptions& options_;
  SharedArena arena_;
  std::shared_ptr<Storage> send_, receive_;
};

}  // namespace

PerfRun measure(ProcessGroup& group, const PerfOptions& options, SharedArena arena,
                const std::function<void(const std::string&)>& print) {
  PerfRun run;
  run.options = options;
  run.transport = std::string(group.kind());
  run.ranks = group.size();
  Sweep sweep(group, options, arena);
  print(table_header(run));
  for (const std::int64_t bytes :
       sweep_sizes(options.begin, options.end, options.step, options.factor,
                   static_cast<std::int64_t>(dtype_size(options.dtype)))) {
    run.results.push_back(sweep.run(bytes, false));
    run.results.push_back(sweep.run(bytes, true));
    print(table_row(run, run.results[run.results.size() - 2], run.results.back()));
  }
  print(table_footer(run));
  return run;
}

}  // namespace lockstep::bench
