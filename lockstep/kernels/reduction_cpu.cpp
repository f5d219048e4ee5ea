#include "lockstep/kernels/reduction.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "lockstep/core/check.h"
#include "lockstep/core/config.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/convert.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/loop_plan.h"
#include "lockstep/kernels/reduction_cuda.h"

namespace lockstep::kernels {
namespace {

constexpr std::int64_t kBlock = 1024;           // elements that one run() takes
constexpr std::int64_t kSegment = 64 * kBlock;  // elements of one result that one thread takes
constexpr std::int64_t kColumns = 512;          // results side by side that one thread takes
constexpr std::int64_t kRowsPerPart = 32;       // rows summed before they join the tree
constexpr std::int64_t kRowSegment = 1024;      // rows that one thread takes
constexpr int kTreeDepth = 64;

// Joins values in the order of their coming as a balanced binary tree: level k holds 2^k of them.
class Tree {
 public:
  Tree(const ReductionLoops& loops, std::int64_t width, std::int64_t itemsize)
      : loops_(loops), width_(width), bytes_(width * itemsize) {}

  // Memory for the next value, to be filled and then pushed.
  std::byte* next() {
    if (used_ == kTreeDepth || !level_[used_])
      level_[used_] = std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes_));
    return level_[used_].get();
  }
  void push() {
    ++used_;
    for (std::int64_t n = ++count_; n % 2 == 0; n /= 2) join();
  }
  // All joined; valid until the tree goes.
  const std::byte* finish() {
    while (used_ > 1) join();
    return level_[0].get();
  }
  void clear() {
    used_ = 0;
    count_ = 0;
  }

 private:
  void join() {
    loops_.combine(level_[used_ - 2].get(), level_[used_ - 1].get(), width_);
    --used_;
  }

  const ReductionLoops& loops_;
  std::int64_t width_, bytes_;
  int used_ = 0;
  std::int64_t count_ = 0;
  std::unique_ptr<std::byte[]> level_[kTreeDepth + 1];
};

struct Job {
  const ReductionLoops* loops;
  LoopPlan kept;       // operand 0: result, operand 1: input
  LoopPlan reduced;    // operand 0: input
  std::int64_t count;  // reduced elements per result
  std::int64_t results;
  ConvertRun load;  // null: the input is of the compute type
  const char* in;
  std::int64_t in_itemsize;
  char* out;
  std::int64_t itemsize;  // of the compute type
};

// Elements of one result, by their number in the reduced plan's order, as contiguous blocks.
class Sequence {
 public:
  Sequence(const Job& job, std::int64_t in_offset, std::int64_t first)
      : job_(job),
        base_(in_offset),
        row_(job.reduced, first / job.reduced.run()),
        at_(first % job.reduced.run()) {}

  // The next n elements: where they lie, or a copy in `buffer`.
  const void* take(std::int64_t n, std::byte* buffer) {
    const std::int64_t run = job_.reduced.run(), stride = job_.reduced.stride[0][0];
    if (!job_.load && stride == 1 && at_ + n <= run) {
      const char* p = job_.in + (base_ + row_.offset(0) + at_) * job_.in_itemsize;
      advance(n);
      return p;
    }
    const ConvertRun load = job_.load ? job_.load : convert_run(compute(), compute());
    for (std::int64_t done = 0; done < n;) {
      const std::int64_t part = std::min(n - done, run - at_);
      load(job_.in + (base_ + row_.offset(0) + at_ * stride) * job_.in_itemsize, stride,
           buffer + done * job_.itemsize, 1, part);
      done += part;
      advance(part);
    }
    return buffer;
  }

 private:
  // Only the size matters for a copy.
  DType compute() const { return job_.itemsize == 4 ? kF32 : kI64; }
  void advance(std::int64_t n) {
    at_ += n;
    if (at_ == job_.reduced.run()) {
      at_ = 0;
      row_.next();
    }
  }

  const Job& job_;
  std::int64_t base_;
  RowCursor row_;
  std::int64_t at_;
};

// Reduced elements [begin, end) of the result whose input starts at in_offset.
void reduce_segment(const Job& job, std::int64_t in_offset, std::int64_t begin, std::int64_t end,
                    void* result) {
  alignas(64) std::byte buffer[kBlock * 8];
  Sequence sequence(job, in_offset, begin);
  if (end - begin <= kBlock) {
    job.loops->run(sequence.take(end - begin, buffer), end - begin, result);
    return;
  }
  Tree tree(*job.loops, 1, job.itemsize);
  for (std::int64_t i = begin; i < end; i += kBlock) {
    const std::int64_t n = std::min(kBlock, end - i);
    job.loops->run(sequence.take(n, buffer), n, tree.next());
    tree.push();
  }
  std::copy_n(tree.finish(), job.itemsize, static_cast<std::byte*>(result));
}

// Joins `parts` values of `width` each, parts[i] after parts[i-1], into result.
void join_parts(const Job& job, const std::byte* parts, std::int64_t count, std::int64_t width,
                char* result, std::int64_t result_stride) {
  Tree tree(*job.loops, width, job.itemsize);
  for (std::int64_t i = 0; i < count; ++i) {
    std::copy_n(parts + i * width * job.itemsize, width * job.itemsize, tree.next());
    tree.push();
  }
  const std::byte* joined = tree.finish();
  for (std::int64_t i = 0; i < width; ++i)
    std::copy_n(joined + i * job.itemsize, job.itemsize,
                reinterpret_cast<std::byte*>(result) + i * result_stride * job.itemsize);
}

struct KeptAt {
  std::int64_t out, in;
};
KeptAt kept_at(const Job& job, std::int64_t i) {
  const std::int64_t run = job.kept.run();
  const RowCursor row(job.kept, i / run);
  const std::int64_t k = i % run;
  return {row.offset(0) + k * job.kept.stride[0][0], row.offset(1) + k * job.kept.stride[0][1]};
}

// Each result's elements lie close to each other.
void reduce_rows(const Job& job) {
  const std::int64_t segments = (job.count + kSegment - 1) / kSegment;
  if (segments == 1) {
    const std::int64_t grain = std::max<std::int64_t>(kSegment / 2 / job.count, 1);
    parallel_for(job.results, grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const KeptAt at = kept_at(job, i);
        reduce_segment(job, at.in, 0, job.count, job.out + at.out * job.itemsize);
      }
    });
    return;
  }
  auto parts = std::make_unique<std::byte[]>(
      static_cast<std::size_t>(job.results * segments * job.itemsize));
  parallel_for(job.results * segments, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t begin = i % segments * kSegment;
      reduce_segment(job, kept_at(job, i / segments).in, begin,
                     std::min(begin + kSegment, job.count), parts.get() + i * job.itemsize);
    }
  });
  for (std::int64_t i = 0; i < job.results; ++i)
    join_parts(job, parts.get() + i * segments * job.itemsize, segments, 1,
               job.out + kept_at(job, i).out * job.itemsize, 1);
}

// Rows [begin, end) of the reduced plan, `width` results side by side.
void reduce_columns_part(const Job& job, std::int64_t in_offset, std::int64_t width,
                         std::int64_t begin, std::int64_t end, std::byte* result) {
  alignas(64) std::byte buffer[kColumns * 8];
  const std::int64_t in_stride = job.kept.stride[0][1];
  const std::int64_t run = job.reduced.run(), step = job.reduced.stride[0][0];
  RowCursor row(job.reduced, begin / run);
  std::int64_t at = begin % run;
  Tree tree(*job.loops, width, job.itemsize);
  for (std::int64_t i = begin; i < end; ++i) {
    const void* x = job.in + (in_offset + row.offset(0) + at * step) * job.in_itemsize;
    if (job.load) {
      job.load(x, in_stride, buffer, 1, width);
      x = buffer;
    }
    const bool first = (i - begin) % kRowsPerPart == 0;
    (first ? job.loops->start : job.loops->accumulate)(tree.next(), x, width);
    if (i + 1 == end || (i + 1 - begin) % kRowsPerPart == 0) tree.push();
    if (++at == run) {
      at = 0;
      row.next();
    }
  }
  std::copy_n(tree.finish(), width * job.itemsize, result);
}

// The results' elements lie side by side: the innermost kept axis is walked in pieces.
void reduce_columns(const Job& job) {
  const std::int64_t run = job.kept.run();
  const std::int64_t pieces = (run + kColumns - 1) / kColumns;
  const std::int64_t segments = (job.count + kRowSegment - 1) / kRowSegment;
  const std::int64_t groups = job.kept.rows() * pieces;
  auto parts = std::make_unique<std::byte[]>(
      static_cast<std::size_t>(groups * segments * std::min(kColumns, run) * job.itemsize));
  const std::int64_t part_bytes = std::min(kColumns, run) * job.itemsize;
  const auto place = [&](std::int64_t group, std::int64_t* width) {
    const std::int64_t begin = group % pieces * kColumns;
    *width = std::min(kColumns, run - begin);
    const RowCursor row(job.kept, group / pieces);
    return KeptAt{row.offset(0) + begin * job.kept.stride[0][0],
                  row.offset(1) + begin * job.kept.stride[0][1]};
  };
  const std::int64_t work = std::min(job.count, kRowSegment) * std::min(kColumns, run);
  const std::int64_t grain =
      std::max<std::int64_t>(kSegment / 2 / std::max<std::int64_t>(work, 1), 1);
  parallel_for(groups * segments, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      std::int64_t width;
      const KeptAt at = place(i / segments, &width);
      const std::int64_t begin = i % segments * kRowSegment;
      reduce_columns_part(job, at.in, width, begin, std::min(begin + kRowSegment, job.count),
                          parts.get() + i * part_bytes);
    }
  });
  parallel_for(groups, std::max<std::int64_t>(kSegment / (segments * kColumns), 1),
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t g = first; g < last; ++g) {
                   std::int64_t width;
                   const KeptAt at = place(g, &width);
                   Tree tree(*job.loops, width, job.itemsize);
                   for (std::int64_t s = 0; s < segments; ++s) {
                     std::copy_n(parts.get() + (g * segments + s) * part_bytes,
                                 width * job.itemsize, tree.next());
                     tree.push();
                   }
                   const std::byte* joined = tree.finish();
                   char* out = job.out + at.out * job.itemsize;
                   const std::int64_t stride = job.kept.stride[0][0];
                   for (std::int64_t k = 0; k < width; ++k)
                     std::copy_n(joined + k * job.itemsize, job.itemsize,
                                 reinterpret_cast<std::byte*>(out) + k * stride * job.itemsize);
                 }
               });
}

// The axes of x that are (or are not) in the set.
void split_axes(const Tensor& x, unsigned axes, bool in_set, Shape* shape, Strides* strides) {
  for (int i = 0; i < x.dim(); ++i) {
    if (((axes >> i & 1) != 0) != in_set) continue;
    shape->push_back(x.shape()[i]);
    strides->push_back(x.strides()[i]);
  }
}

}  // namespace

unsigned axis_set(const Shape& axes, int rank, const char* op) {
  if (axes.rank() == 0) return (1u << rank) - 1;
  unsigned set = 0;
  for (std::int64_t axis : axes) {
    const unsigned bit = 1u << normalize_axis(axis, rank, op);
    LOCKSTEP_CHECK(!(set & bit), "{}: axis {} is named twice in {}", op, axis, axes);
    set |= bit;
  }
  return rank == 0 ? 0 : set;
}

Shape reduced_shape(const Shape& shape, unsigned axes, bool keepdim) {
  Shape out;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!(axes >> i & 1))
      out.push_back(shape[i]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

std::int64_t reduced_count(const Shape& shape, unsigned axes) {
  std::int64_t n = 1;
  for (int i = 0; i < shape.rank(); ++i)
    if (axes >> i & 1) n *= shape[i];
  return n;
}

Tensor reduce(const Tensor& x, unsigned axes, DType compute, const ReductionLoops& loops) {
  const MemoryFormat format = x.suggested_format();
  Tensor out = empty(reduced_shape(x.shape(), axes, true), {compute, x.device(), format});
  if (out.numel() == 0) return out;
  if constexpr (kHasCuda) {
    if (x.device().is_cuda()) {
      cuda::reduce_into(x, axes, compute, loops.op, out, 1);
      return out;
    }
  }
  Shape kept_shape, kept_out_shape, reduced;
  Strides kept_in, kept_out, reduced_in;
  require_cpu("reduction", {&x, &out});
  split_axes(x, axes, false, &kept_shape, &kept_in);
  split_axes(out, axes, false, &kept_out_shape, &kept_out);
  split_axes(x, axes, true, &reduced, &reduced_in);
  Job job;
  job.loops = &loops;
  // Walked in the input's order: that is where the bytes are.
  const PlanOperand kept[] = {{&kept_shape, &kept_in}, {&kept_shape, &kept_out}};
  job.kept = plan_loop(kept_shape, kept);
  for (int i = 0; i < job.kept.rank; ++i) std::swap(job.kept.stride[i][0], job.kept.stride[i][1]);
  const PlanOperand input[] = {{&reduced, &reduced_in}};
  job.reduced = plan_loop(reduced, input);
  job.count = reduced.numel();
  job.results = out.numel();
  job.load = x.dtype() == compute ? nullptr : convert_run(x.dtype(), compute);
  job.in = static_cast<const char*>(x.data());
  job.in_itemsize = static_cast<std::int64_t>(x.itemsize());
  job.out = static_cast<char*>(out.data());
  job.itemsize = static_cast<std::int64_t>(out.itemsize());
  const std::int64_t kept_step = job.kept.stride[0][1], reduced_step = job.reduced.stride[0][0];
  const bool side_by_side =
      kept_step == 1 && job.kept.run() >= 4 && job.count > 1 && reduced_step != 1;
  if (side_by_side)
    reduce_columns(job);
  else
    reduce_rows(job);
  return out;
}

Tensor reduce_to(const Tensor& x, unsigned axes, DType compute, const ReductionLoops& loops,
                 DType result, double divisor) {
  if constexpr (kHasCuda) {
    if (x.device().is_cuda()) {
      Tensor out =
          empty(reduced_shape(x.shape(), axes, true), {result, x.device(), x.suggested_format()});
      if (out.numel() > 0) cuda::reduce_into(x, axes, compute, loops.op, out, divisor);
      return out;
    }
  }
  const Tensor y = reduce(x, axes, compute, loops);
  if (divisor != 1) div_into(y, y, divisor);
  return cast(y, result);
}

Tensor drop_axes(const Tensor& x, unsigned axes) {
  Shape shape;
  Strides strides;
  split_axes(x, axes, false, &shape, &strides);
  return {x.storage(), shape, strides, x.offset(), x.dtype()};
}

}  // namespace lockstep::kernels
