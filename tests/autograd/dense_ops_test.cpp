// Convolution, pooling, batch norm and products in the graph: PyTorch's values, finite differences.
#include <cmath>
#include <functional>

#include "lockstep/autograd/gradcheck.h"
#include "lockstep/autograd/ops/adaptive_avg_pool2d.h"
#include "lockstep/autograd/ops/avg_pool2d.h"
#include "lockstep/autograd/ops/batch_norm.h"
#include "lockstep/autograd/ops/batch_norm_pool.h"
#include "lockstep/autograd/ops/bmm.h"
#include "lockstep/autograd/ops/conv2d.h"
#include "lockstep/autograd/ops/linear.h"
#include "lockstep/autograd/ops/matmul.h"
#include "lockstep/autograd/ops/max_pool2d.h"
#include "lockstep/autograd/record.h"
#include "lockstep/core/error.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/image_layout.h"
#include "support/expect_close.h"
#include "support/reference.h"

namespace lockstep {
namespace {

using Op = std::function<Variable(const std::vector<Variable>&)>;

// y and all gradients of the stored case in every dtype.
void expect_reference(const std::string& name, const std::vector<std::string>& names,
                      const Op& op) {
  SCOPED_TRACE(name);
  const testing::Reference stored("dense_ops");
  for (DType dtype : {kF32, kF64, kBF16, kF16}) {
    SCOPED_TRACE(dtype_name(dtype));
    const double tol = dtype == kBF16 ? 0.06 : dtype == kF16 ? 8e-3 : 2e-5;
    std::vector<Variable> in;
    for (const auto& n : names)
      in.emplace_back(kernels::cast(stored[name + "." + n], dtype).clone(), true);
    const Variable y = op(in);
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_CLOSE(y.data(), stored[name + ".y"], tol, tol);
    y.backward(kernels::cast(stored[name + ".dy"], dtype));
    // ReLU and max pooling of rounded inputs may choose another branch: no gradients there.
    const bool branches = name.find("relu") != std::string::npos || name.starts_with("max");
    if (branches && dtype_size(dtype) == 2) continue;
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(in[i].grad().dtype(), dtype);
      EXPECT_CLOSE(in[i].grad(), stored[name + ".d" + names[i]], 2 * tol, 4 * tol);
    }
  }
}

TEST(DenseOps, GivePyTorchsValuesAndGradients) {
  using V = std::vector<Variable>;
  expect_reference("conv", {"x", "w", "b"}, [](const V& v) { return conv2d(v[0], v[1], v[2]); });
  expect_reference("conv_odd", {"x", "w", "b"}, [](const V& v) {
    return conv2d(v[0], v[1], v[2], {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}});
  });
  expect_reference("conv_groups", {"x", "w", "b"}, [](const V& v) {
    return conv2d(v[0], v[1], v[2], {.padding = {1, 1}, .groups = 2});
  });
  expect_reference("max_pool", {"x"}, [](const V& v) { return max_pool2d(v[0], 2); });
  const kernels::Pool2dOptions three{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  kernels::Pool2dOptions ceil = three;
  ceil.ceil_mode = true;
  expect_reference("max_pool_overlap", {"x"}, [&](const V& v) { return max_pool2d(v[0], ceil); });
  expect_reference("avg_pool", {"x"}, [&](const V& v) { return avg_pool2d(v[0], {three}); });
  expect_reference("avg_pool_inside", {"x"}, [&](const V& v) {
    return avg_pool2d(v[0], {ceil, false});
  });
  expect_reference("adaptive", {"x"}, [](const V& v) { return adaptive_avg_pool2d(v[0], 3, 4); });
  expect_reference("linear", {"x", "w", "b"}, [](const V& v) { return linear(v[0], v[1], v[2]); });
  expect_reference("matmul", {"a", "b"}, [](const V& v) { return matmul(v[0], v[1]); });
  expect_reference("bmm", {"a", "b"}, [](const V& v) { return bmm(v[0], v[1]); });
}

TEST(DenseOps, BatchNormGivesPyTorchsValuesGradientsAndStatistics) {
  using V = std::vector<Variable>;
  const testing::Reference stored("dense_ops");
  for (const std::string name : {"norm1d", "norm_sequence", "norm2d"}) {
    const Tensor mean = stored[name + ".mean"], var = stored[name + ".var"];
    expect_reference(name + ".eval", {"x", "w", "b"},
                     [&](const V& v) { return batch_norm(v[0], v[1], v[2], mean, var, false); });
    expect_reference(name + ".train", {"x", "w", "b"}, [&](const V& v) {
      const Tensor m = mean.clone(), s = var.clone();
      const Variable y = batch_norm(v[0], v[1], v[2], m, s, true, 0.2);
      const double tol = dtype_size(v[0].dtype()) == 2 ? 0.02 : 1e-6;
      EXPECT_CLOSE(m, stored[name + ".mean_after"], tol, tol);
      EXPECT_CLOSE(s, stored[name + ".var_after"], tol, tol);
      return y;
    });
    expect_reference(name + ".relu", {"x", "w", "b"},
                     [&](const V& v) { return batch_norm_relu(v[0], v[1], v[2], {}, {}, true); });
  }
}

Tensor wave(const Shape& shape, double phase) {
  Tensor t = empty(shape, {.dtype = kF64});
  for (std::int64_t i = 0; i < t.numel(); ++i)
    t.data<double>()[i] = std::sin(1.7 * static_cast<double>(i) + phase) +
                          0.3 * std::cos(0.37 * static_cast<double>(i * i));
  return t;
}

TEST(DenseOps, GradientsAreThoseOfFiniteDifferences) {
  using V = std::vector<Variable>;
  const auto check = [](const char* name, const Op& f, const std::vector<Tensor>& in) {
    EXPECT_EQ(gradcheck(f, in), "") << name;
  };
  const Tensor x = wave({2, 4, 5, 4}, 0.1), w = wave({4, 2, 3, 2}, 0.2), b = wave({4}, 0.3);
  const kernels::Conv2dOptions o{.stride = {2, 1}, .padding = {1, 1}, .groups = 2};
  check("conv2d", [&](const V& v) { return conv2d(v[0], v[1], v[2], o); }, {x, w, b});
  check("conv2d without bias", [&](const V& v) { return conv2d(v[0], v[1], {}, o); }, {x, w});
  check("conv2d_relu", [&](const V& v) { return conv2d_relu(v[0], v[1], v[2], o); }, {x, w, b});
  check("max_pool2d", [](const V& v) { return max_pool2d(v[0], 2); }, {x});
  check("max_pool2d contiguous",
        [](const V& v) { return max_pool2d(v[0], 2, MemoryFormat::kContiguous); }, {x});
  check("avg_pool2d", [](const V& v) { return avg_pool2d(v[0], 2); }, {x});
  check("adaptive", [](const V& v) { return adaptive_avg_pool2d(v[0], 3, 3); }, {x});
  const Tensor m = wave({3, 4}, 0.4), n = wave({5, 4}, 0.5), c = wave({5}, 0.6);
  check("linear", [](const V& v) { return linear(v[0], v[1], v[2]); }, {m, n, c});
  check("linear_relu", [](const V& v) { return linear_relu(v[0], v[1], v[2]); }, {m, n, c});
  check("matmul", [](const V& v) { return matmul(v[0], v[1]); },
        {wave({2, 1, 3, 4}, 1), wave({3, 4, 2}, 2)});
  check("matmul vector", [](const V& v) { return matmul(v[0], v[1]); }, {m, wave({4}, 2)});
  check("bmm", [](const V& v) { return bmm(v[0], v[1]); },
        {wave({2, 3, 4}, 1), wave({2, 4, 2}, 2)});
  const Tensor gamma = wave({4}, 3), beta = wave({4}, 4);
  check("batch_norm", [](const V& v) { return batch_norm(v[0], v[1], v[2], {}, {}, true); },
        {x, gamma, beta});
  check("batch_norm_relu",
        [](const V& v) { return batch_norm_relu(v[0], v[1], v[2], {}, {}, true); },
        {x, gamma, beta});
  check("batch_norm_relu_max_pool2d",
        [](const V& v) {
          return batch_norm_relu_max_pool2d(v[0], v[1], v[2], {}, {}, true, 0.1, 1e-5, 2);
        },
        {x, gamma, beta});
  const Tensor mean = wave({4}, 5), var = full({4}, 1.5, {.dtype = kF64});
  check("batch_norm_relu_max_pool2d in evaluation",
        [&](const V& v) {
          return batch_norm_relu_max_pool2d(v[0], v[1], v[2], mean, var, false, 0.1, 1e-5, 2,
                                            MemoryFormat::kContiguous);
        },
        {x, gamma, beta});
  check("batch_norm in evaluation",
        [&](const V& v) { return batch_norm(v[0], v[1], v[2], mean, var, false); },
        {x, gamma, beta});
}

// pytorch/pytorch#1381: one value has no variance.
TEST(BatchNormOp, RefusesOneValuePerChannelAndKeepsItsStatistics) {
  const Tensor mean = full({3}, 7), var = full({3}, 8);
  EXPECT_THROW(batch_norm(ones({1, 3}), {}, {}, mean, var, true), Error);
  EXPECT_THROW(batch_norm(ones({1, 3, 1, 1}), {}, {}, mean, var, true), Error);
  EXPECT_SAME_BITS(mean, full({3}, 7));
  EXPECT_SAME_BITS(var, full({3}, 8));
  EXPECT_EQ(batch_norm(ones({1, 3}), {}, {}, mean, var, false).shape(), Shape({1, 3}));
  const Tensor m = zeros({1}), v = zeros({1});
  batch_norm(tensor<float>({1, 3, 1, 3}, {1, 1, 2, 2}), {}, {}, m, v, true, 1.0);
  EXPECT_NEAR(m.item(), 2, 1e-6);
  EXPECT_NEAR(v.item(), 4.0 / 3, 1e-6);
}

TEST(BatchNormOp, AnEmptyBatchPassesAndGivesZeroGradients) {
  const Variable x(empty({0, 3, 4, 4}), true), w(ones({3}), true), b(zeros({3}), true);
  const Tensor mean = full({3}, 7), var = full({3}, 8);
  const Variable y = batch_norm_relu(x, w, b, mean, var, true);
  y.backward(empty({0, 3, 4, 4}));
  EXPECT_SAME_BITS(w.grad(), zeros({3}));
  EXPECT_SAME_BITS(b.grad(), zeros({3}));
  EXPECT_SAME_BITS(mean, full({3}, 7));
}

// Mixed precision: half activations, f32 parameters and statistics.
TEST(BatchNormOp, HalfActivationsKeepFloatParameters) {
  const Variable x(kernels::cast(wave({4, 3, 2, 2}, 1), kBF16), true);
  const Variable w(ones({3}), true), b(zeros({3}), true);
  const Variable y = batch_norm(x, w, b, {}, {}, true);
  EXPECT_EQ(y.dtype(), kBF16);
  y.backward(kernels::cast(wave({4, 3, 2, 2}, 2), kBF16));
  EXPECT_EQ(x.grad().dtype(), kBF16);
  EXPECT_EQ(w.grad().dtype(), kF32);
}

// The recipe's chain of layers: images stay channels-last from the first to the last.
TEST(ChannelsLast, NoOperationOfAConvolutionalNetReordersAnActivation) {
  const auto parameter = [](const Shape& shape) {
    return Variable(kernels::cast(wave(shape, 1), kF32), true);
  };
  const Variable images(kernels::cast(wave({2, 1, 16, 16}, 1), kF32));
  const Variable w1 = parameter({8, 1, 3, 3}), b1 = parameter({8});
  const Variable w2 = parameter({6, 8, 3, 3}), b2 = parameter({6});
  const Variable w3 = parameter({5, 216}), b3 = parameter({5});
  const std::uint64_t before = kernels::activation_reorders();
  Variable x = conv2d(images, w1, b1);
  x = batch_norm_relu(x, {}, {}, {}, {}, true);
  x = conv2d(x, w2, b2);
  x = batch_norm_relu(x, {}, {}, {}, {}, true);
  x = max_pool2d(x, 2, MemoryFormat::kContiguous);
  const Shape pooled = x.shape();
  // A flatten that must be a view, in both directions.
  x = record("flatten", x.data().view({2, 216}), inputs(x), [&](const Tensor&) {
    return
        [pooled](const Tensor& dy, Gradients& dx) { dx.set(0, [&] { return dy.view(pooled); }); };
  });
  x = linear(x, w3, b3);
  x.backward(ones({2, 5}));
  EXPECT_EQ(kernels::activation_reorders() - before, 0u);
  EXPECT_TRUE(w1.grad().defined());
  // And the count does count: an image in the other layout is copied once.
  conv2d(Variable(ones({1, 8, 5, 5})), w2, b2);
  EXPECT_EQ(kernels::activation_reorders() - before, 1u);
}

}  // namespace
}  // namespace lockstep
