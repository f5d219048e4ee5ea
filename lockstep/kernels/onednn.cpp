#include "lockstep/kernels/onednn.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockstep/core/check.h"
#include "lockstep/core/threads.h"

namespace lockstep::kernels::onednn {
namespace {

using dnnl::memory;

// Interface 2.x describes an operation in two steps, 3.x in one; the arguments are the same.
template <class Primitive, class... Args>
typename Primitive::primitive_desc describe(const dnnl::engine& engine,
                                            const dnnl::primitive_attr& attr, Args&&... args) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, std::forward<Args>(args)..., attr};
#else
  return {typename Primitive::desc(std::forward<Args>(args)...), attr, engine};
#endif
}

template <class Primitive, class Hint, class... Args>
typename Primitive::primitive_desc describe_backward(const dnnl::engine& engine,
                                                     const dnnl::primitive_attr& attr,
                                                     const Hint& hint, Args&&... args) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, std::forward<Args>(args)..., hint, attr};
#else
  return {typename Primitive::desc(std::forward<Args>(args)...), attr, engine, hint};
#endif
}

void append_relu(dnnl::post_ops& ops) {
#if DNNL_VERSION_MAJOR >= 3
  ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0.f, 0.f);
#else
  ops.append_eltwise(1.f, dnnl::algorithm::eltwise_relu, 0.f, 0.f);
#endif
}

// A compiled primitive with what its execution needs.
struct Operation {
  dnnl::primitive primitive;
  memory::desc scratch;
  memory::desc weights;        // the order that the primitive wants (or, for dw, makes)
  memory::desc plain_weights;  // ours
  dnnl::primitive reorder;     // between the two; empty where they are one
  std::vector<std::pair<int, memory>> arguments;
  bool supported = true;

  bool reorders() const { return static_cast<bool>(reorder); }
};

using Key = std::array<std::int64_t, 24>;

struct Entry {
  Key key;
  std::uint64_t last_use;
  std::unique_ptr<Operation> operation;
};

// What a thread owns of the library.
struct Context {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::vector<Entry> entries;
  std::uint64_t uses = 0;

  template <class Make>
  Operation& find(const Key& key, const Make& make) {
    ++uses;
    for (Entry& e : entries) {
      if (e.key != key) continue;
      e.last_use = uses;
      return *e.operation;
    }
    auto operation = std::make_unique<Operation>(make());
    if (entries.size() >= kCacheCapacity) {
      const auto oldest =
          std::min_element(entries.begin(), entries.end(),
                           [](const Entry& a, const Entry& b) { return a.last_use < b.last_use; });
      *oldest = {key, uses, std::move(operation)};
      return *oldest->operation;
    }
    entries.push_back({key, uses, std::move(operation)});
    return *entries.back().operation;
  }
};

thread_local std::unique_ptr<Context> thread_context;

Context& context() {
  if (!thread_context) thread_context = std::make_unique<Context>();
  return *thread_context;
}

// Runs f with the library's errors turned into ours.
template <class F>
decltype(auto) guarded(const char* what, F&& f) {
  try {
    return f();
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory)
      throw OutOfMemoryError(fmt::format("{}: oneDNN ran out of memory", what));
    throw Error(fmt::format("{}: oneDNN failed: {} (status {})", what, e.what(),
                            static_cast<int>(e.status)));
  }
}

memory::data_type data_type(DType dtype) {
  return dtype == kBF16 ? memory::data_type::bf16 : memory::data_type::f32;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

int usable_threads(int asked) { return in_parallel_region() ? 1 : asked; }

// Sets the pointers and runs; `pointers` are in the order of operation.arguments.
void execute(Operation& operation, std::initializer_list<const void*> pointers) {
  Context& c = context();
  const Tensor scratch =
      empty({static_cast<std::int64_t>(operation.scratch.get_size())}, {.dtype = kU8});
  std::unordered_map<int, memory> arguments;
  auto pointer = pointers.begin();
  for (auto& [index, value] : operation.arguments) {
    value.set_data_handle(const_cast<void*>(*pointer++));
    arguments.emplace(index, value);
  }
  if (scratch.numel() > 0)
    arguments.emplace(DNNL_ARG_SCRATCHPAD, memory(operation.scratch, c.engine, scratch.data()));
  operation.primitive.execute(c.stream, arguments);
  c.stream.wait();
}

void run_reorder(Operation& operation, const memory::desc& from_desc, const void* from,
                 const memory::desc& to_desc, void* to) {
  Context& c = context();
  operation.reorder.execute(c.stream,
                            {{DNNL_ARG_FROM, memory(from_desc, c.engine, const_cast<void*>(from))},
                             {DNNL_ARG_TO, memory(to_desc, c.engine, to)}});
  c.stream.wait();
}

Key conv_key(const Conv& v, ConvDirection direction) {
  return {static_cast<std::int64_t>(direction),
          static_cast<std::int64_t>(v.dtype),
          v.bias,
          v.relu,
          v.n,
          v.groups,
          v.ic,
          v.ih,
          v.iw,
          v.oc,
          v.oh,
          v.ow,
          v.kh,
          v.kw,
          v.stride[0],
          v.stride[1],
          v.padding[0],
          v.padding[1],
          v.dilation[0],
          v.dilation[1],
          usable_threads(v.threads)};
}

Operation make_conv(const Conv& v, ConvDirection direction) {
  using dnnl::algorithm;
  using tag = memory::format_tag;
  const dnnl::engine& engine = context().engine;
  const memory::data_type type = data_type(v.dtype);
  const bool weights_gradient = direction == ConvDirection::kBackwardWeights;
  const memory::data_type weights_type = weights_gradient ? memory::data_type::f32 : type;
  const memory::dims weights_dims =
      v.groups > 1 ? memory::dims{v.groups, v.oc / v.groups, v.ic / v.groups, v.kh, v.kw}
                   : memory::dims{v.oc, v.ic, v.kh, v.kw};
  const memory::desc x({v.n, v.ic, v.ih, v.iw}, type, tag::nhwc);
  const memory::desc y({v.n, v.oc, v.oh, v.ow}, type, tag::nhwc);
  const memory::desc w(weights_dims, weights_type, tag::any);
  const memory::desc b = v.bias ? memory::desc({v.oc}, weights_type, tag::x) : memory::desc();
  const memory::dims strides{v.stride[0], v.stride[1]};
  const memory::dims dilates{v.dilation[0] - 1, v.dilation[1] - 1};
  const memory::dims front{v.padding[0], v.padding[1]};
  // What the last window leaves over at the far side is cut off by a smaller (even negative)
  // padding.
  const auto back = [](std::int64_t out, std::int64_t stride, std::int64_t kernel,
                       std::int64_t dilation, std::int64_t in, std::int64_t padding) {
    return (out - 1) * stride + (kernel - 1) * dilation + 1 - in - padding;
  };
  const memory::dims behind{back(v.oh, v.stride[0], v.kh, v.dilation[0], v.ih, v.padding[0]),
                            back(v.ow, v.stride[1], v.kw, v.dilation[1], v.iw, v.padding[1])};
  dnnl::primitive_attr attr = user_scratchpad();
  Operation op;
  op.plain_weights =
      memory::desc(weights_dims, weights_type, v.groups > 1 ? tag::goihw : tag::oihw);
  const auto finish = [&](auto primitive, const auto& pd, const memory::desc& weights) {
    op.primitive = primitive;
    op.scratch = pd.scratchpad_desc();
    op.weights = weights;
  };
  const auto argument = [&](int index, const memory::desc& desc) {
    op.arguments.emplace_back(index, memory(desc, engine, DNNL_MEMORY_NONE));
  };
  const auto forward = [&](const dnnl::primitive_attr& with) {
    return describe<dnnl::convolution_forward>(engine, with, dnnl::prop_kind::forward_training,
                                               algorithm::convolution_direct, x, w, b, y, strides,
                                               dilates, front, behind);
  };
  try {
    if (direction == ConvDirection::kForward) {
      if (v.relu) {
        dnnl::post_ops ops;
        append_relu(ops);
        attr.set_post_ops(ops);
      }
      const auto pd = forward(attr);
      finish(dnnl::convolution_forward(pd), pd, pd.weights_desc());
      argument(DNNL_ARG_SRC, x);
      argument(DNNL_ARG_WEIGHTS, op.weights);
      if (v.bias) argument(DNNL_ARG_BIAS, b);
      argument(DNNL_ARG_DST, y);
    } else if (direction == ConvDirection::kBackwardData) {
      const auto pd = describe_backward<dnnl::convolution_backward_data>(
          engine, attr, forward(attr), algorithm::convolution_direct, x, w, y, strides, dilates,
          front, behind);
      finish(dnnl::convolution_backward_data(pd), pd, pd.weights_desc());
      argument(DNNL_ARG_DIFF_DST, y);
      argument(DNNL_ARG_WEIGHTS, op.weights);
      argument(DNNL_ARG_DIFF_SRC, x);
    } else {
      const memory::desc same(weights_dims, type, tag::any);
      const memory::desc same_bias = v.bias ? memory::desc({v.oc}, type, tag::x) : memory::desc();
      const auto hint = describe<dnnl::convolution_forward>(
          engine, attr, dnnl::prop_kind::forward_training, algorithm::convolution_direct, x, same,
          same_bias, y, strides, dilates, front, behind);
      const auto pd = describe_backward<dnnl::convolution_backward_weights>(
          engine, attr, hint, algorithm::convolution_direct, x, w, b, y, strides, dilates, front,
          behind);
      finish(dnnl::convolution_backward_weights(pd), pd, pd.diff_weights_desc());
      argument(DNNL_ARG_SRC, x);
      argument(DNNL_ARG_DIFF_DST, y);
      argument(DNNL_ARG_DIFF_WEIGHTS, op.weights);
      if (v.bias) argument(DNNL_ARG_DIFF_BIAS, b);
    }
    if (op.weights != op.plain_weights) {
      const auto& from = weights_gradient ? op.weights : op.plain_weights;
      const auto& to = weights_gradient ? op.plain_weights : op.weights;
      op.reorder = dnnl::reorder(dnnl::reorder::primitive_desc(engine, from, engine, to));
    }
  } catch (const dnnl::error& e) {
    if (e.status != dnnl_unimplemented && e.status != dnnl_invalid_arguments) throw;
    op = {};
    op.supported = false;
  }
  return op;
}

Operation& conv(const Conv& v, ConvDirection direction) {
  return context().find(conv_key(v, direction), [&] { return make_conv(v, direction); });
}

Operation make_matmul(const Gemm& g) {
  const dnnl::engine& engine = context().engine;
  const auto matrix = [](std::int64_t rows, std::int64_t cols, bool transposed,
                         std::int64_t leading) {
    return memory::desc({rows, cols}, memory::data_type::bf16,
                        transposed ? memory::dims{1, leading} : memory::dims{leading, 1});
  };
  const memory::desc a = matrix(g.m, g.k, g.transpose_a, g.lda);
  const memory::desc b = matrix(g.k, g.n, g.transpose_b, g.ldb);
  const memory::desc c = matrix(g.m, g.n, false, g.ldc);
  dnnl::primitive_attr attr = user_scratchpad();
  if (g.accumulate) {
    dnnl::post_ops ops;
    ops.append_sum();
    attr.set_post_ops(ops);
  }
  Operation op;
  try {
    const auto pd = describe<dnnl::matmul>(engine, attr, a, b, c);
    op.primitive = dnnl::matmul(pd);
    op.scratch = pd.scratchpad_desc();
    op.arguments.emplace_back(DNNL_ARG_SRC, memory(a, engine, DNNL_MEMORY_NONE));
    op.arguments.emplace_back(DNNL_ARG_WEIGHTS, memory(b, engine, DNNL_MEMORY_NONE));
    op.arguments.emplace_back(DNNL_ARG_DST, memory(c, engine, DNNL_MEMORY_NONE));
  } catch (const dnnl::error& e) {
    if (e.status != dnnl_unimplemented && e.status != dnnl_invalid_arguments) throw;
    op = {};
    op.supported = false;
  }
  return op;
}

}  // namespace

void sgemm(const Gemm& g) {
  const ThreadLimit limit(usable_threads(g.threads));
  const dnnl_status_t status =
      dnnl_sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', g.m, g.n, g.k, 1.f,
                 static_cast<const float*>(g.a), g.lda, static_cast<const float*>(g.b), g.ldb,
                 g.accumulate ? 1.f : 0.f, static_cast<float*>(g.c), g.ldc);
  LOCKSTEP_CHECK(status == dnnl_success, "gemm: oneDNN failed on m {}, n {}, k {} (status {})", g.m,
                 g.n, g.k, static_cast<int>(status));
}

bool matmul_bf16(const Gemm& g) {
  const ThreadLimit limit(usable_threads(g.threads));
  constexpr std::int64_t kMatmul = 3;  // after the directions of a convolution
  const Key key{kMatmul,
                g.transpose_a,
                g.transpose_b,
                g.m,
                g.n,
                g.k,
                g.lda,
                g.ldb,
                g.ldc,
                g.accumulate,
                usable_threads(g.threads)};
  return guarded("matmul", [&] {
    Operation& op = context().find(key, [&] { return make_matmul(g); });
    if (op.supported) execute(op, {g.a, g.b, g.c});
    return op.supported;
  });
}

bool supports(const Conv& v, ConvDirection direction) {
  const ThreadLimit limit(usable_threads(v.threads));
  return guarded("conv2d", [&] { return conv(v, direction).supported; });
}

Tensor pack_weights(const Conv& v, ConvDirection direction, const Tensor& w) {
  const ThreadLimit limit(usable_threads(v.threads));
  return guarded("conv2d", [&] {
    Operation& op = conv(v, direction);
    if (!op.reorders()) return w;
    Tensor packed = empty({static_cast<std::int64_t>(op.weights.get_size())}, {.dtype = kU8});
    run_reorder(op, op.plain_weights, w.data(), op.weights, packed.data());
    return packed;
  });
}

bool same_weights(const Conv& a, const Conv& b, ConvDirection direction) {
  return guarded("conv2d", [&] {
    const memory::desc first = conv(a, direction).weights;
    return first == conv(b, direction).weights;
  });
}

void conv_forward(const Conv& v, const void* x, const Tensor& packed, const void* bias, void* y) {
  const ThreadLimit limit(usable_threads(v.threads));
  guarded("conv2d", [&] {
    Operation& op = conv(v, ConvDirection::kForward);
    v.bias ? execute(op, {x, packed.data(), bias, y}) : execute(op, {x, packed.data(), y});
  });
}

void conv_backward_data(const Conv& v, const void* dy, const Tensor& packed, void* dx) {
  const ThreadLimit limit(usable_threads(v.threads));
  guarded("conv2d", [&] {
    execute(conv(v, ConvDirection::kBackwardData), {dy, packed.data(), dx});
  });
}

void conv_backward_weights(const Conv& v, const void* x, const void* dy, float* dw, float* db) {
  const ThreadLimit limit(usable_threads(v.threads));
  guarded("conv2d", [&] {
    Operation& op = conv(v, ConvDirection::kBackwardWeights);
    const Tensor blocked =
        op.reorders() ? empty({static_cast<std::int64_t>(op.weights.get_size())}, {.dtype = kU8})
                      : Tensor();
    void* made = op.reorders() ? blocked.data() : dw;
    v.bias ? execute(op, {x, dy, made, db}) : execute(op, {x, dy, made});
    if (op.reorders()) run_reorder(op, op.weights, made, op.plain_weights, dw);
  });
}

void release_thread_cache() { thread_context.reset(); }

std::size_t cached_primitives() { return thread_context ? thread_context->entries.size() : 0; }

}  // namespace lockstep::kernels::onednn
