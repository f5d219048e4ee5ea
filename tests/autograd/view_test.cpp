// Shape operations: sharing, gradients by finite differences, empty tensors, errors.
#include "lockstep/autograd/ops/view.h"

#include <gtest/gtest.h>

#include "lockstep/autograd/gradcheck.h"
#include "lockstep/autograd/ops/arithmetic.h"
#include "lockstep/autograd/ops/extremum.h"
#include "lockstep/autograd/ops/index.h"
#include "lockstep/autograd/ops/join.h"
#include "lockstep/autograd/ops/moments.h"
#include "lockstep/autograd/ops/slice.h"
#include "lockstep/autograd/ops/sum.h"
#include "lockstep/kernels/cast.h"
#include "support/expect_close.h"

namespace lockstep {
namespace {

using Vars = std::vector<Variable>;

Tensor counting(const Shape& shape) {
  return kernels::cast(arange(shape.numel()), kF64).view(shape);
}

TEST(View, SharesStorage) {
  const Variable x(ones({2, 3, 4}));
  for (const Variable& y :
       {view(x, {6, -1}), reshape(x, {24}), flatten(x), permute(x, {2, 0, 1}), transpose(x, 0, 2),
        unsqueeze(x, 1), squeeze(x, 0), expand(x, {5, 2, 3, 4}), slice(x, 1, 0, 2), select(x, 0, 1),
        narrow(x, 2, 1, 2), chunk(x, 2, 2)[1]})
    EXPECT_TRUE(y.data().shares_storage_with(x.data()));
  EXPECT_FALSE(clone(x).data().shares_storage_with(x.data()));
  EXPECT_FALSE(reshape(permute(x, {2, 0, 1}), {24}).data().shares_storage_with(x.data()));
  EXPECT_TRUE(contiguous(x).is(x));
}

TEST(View, GradientsAgreeWithFiniteDifferences) {
  const Tensor x = counting({2, 3, 1, 4});
  const std::function<Variable(const Vars&)> ops[] = {
      [](const Vars& v) {
        return view(v[0], {3, -1});
      },
      [](const Vars& v) {
        return reshape(permute(v[0], {3, 1, 0, 2}), {6, 4});
      },
      [](const Vars& v) { return flatten(transpose(v[0], 1, -1), 1, 2); },
      [](const Vars& v) {
        return expand(squeeze(v[0], 2), {5, 2, 3, 4});
      },
      [](const Vars& v) {
        return unsqueeze(t(reshape(v[0], {6, 4})), -1);
      },
      [](const Vars& v) { return channels_last(v[0]) * clone(v[0]); },
      [](const Vars& v) { return slice(v[0], -1, -3, 100, 2); },
      [](const Vars& v) { return stack(chunk(v[0], 2, 3), 1); },
      [](const Vars& v) { return cat(split(v[0], 2, 1), 1); },
      [](const Vars& v) {
        return pad(v[0], {1, 0, 2, 2}, 3);
      },
      [](const Vars& v) {
        return var(v[0], {1, 3}, false, true) + std(v[0]);
      },
      [](const Vars& v) { return max(v[0], 3).first + amin(v[0], {3}); },
  };
  for (const auto& op : ops) EXPECT_EQ(gradcheck(op, {x}), "");
}

TEST(View, EmptyTensors) {
  Variable x(empty({0, 3}), true);
  const Variable y = cat(Vars{reshape(x, {3, 0}), Variable(zeros({3, 2}))}, 1);
  EXPECT_EQ(y.shape(), (Shape{3, 2}));
  sum(y).backward();
  EXPECT_EQ(x.grad().shape(), (Shape{0, 3}));
  EXPECT_EQ(pad(x, {1, 1, 2, 0}, 4).shape(), (Shape{2, 5}));
  EXPECT_EQ(flatten(x).shape(), Shape{0});
  EXPECT_EQ(chunk(x, 2).size(), 1u);
}

TEST(View, MixedDtypesInCatGetTheirOwnGradient) {
  Variable a(ones({2}), true), b(ones({2}, {kF16}), true);
  const Variable y = cat(Vars{a, b});
  EXPECT_EQ(y.dtype(), kF32);
  y.backward(tensor<float>({1, 2, 3, 4}));
  EXPECT_EQ(b.grad().dtype(), kF16);
  EXPECT_CLOSE(b.grad(), tensor<float>({3, 4}), 0, 0);
}

TEST(View, Errors) {
  const Variable x(ones({2, 3}));
  EXPECT_THROW(view(x, {4}), Error);
  EXPECT_THROW(flatten(x, 1, 0), Error);
  EXPECT_THROW(narrow(x, 1, 2, 2), Error);
  EXPECT_THROW(cat(Vars{}), Error);
  EXPECT_THROW(cat(Vars{x, Variable(ones({3, 2}))}), Error);
  EXPECT_THROW(stack(Vars{x, Variable(ones({3, 2}))}), Error);
  EXPECT_THROW(pad(x, {1}), Error);
  EXPECT_THROW(pad(x, {1, -1}), Error);
  EXPECT_THROW(split(x, 0), Error);
  EXPECT_THROW(index_select(x, 0, Variable(ones({1}))), Error);
  EXPECT_THROW(gather(x, 1, Variable(tensor<std::int64_t>({3}, {1, 1}))), Error);
}

TEST(View, ChannelsLastGoesThroughSliceAndCat) {
  Variable x(channels_last(Variable(ones({2, 4, 3, 3}))).data(), true);
  const Variable y = cat(split(x, 2, 1), 1);
  EXPECT_TRUE(y.data().is_contiguous(MemoryFormat::kChannelsLast));
  sum(y).backward();
  EXPECT_CLOSE(x.grad(), ones({2, 4, 3, 3}), 0, 0);
}

}  // namespace
}  // namespace lockstep
