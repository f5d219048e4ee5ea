// Another value for a leaf: what stays, what goes, and what is refused.
#include <gtest/gtest.h>

#include "autograd/product.h"
#include "lockstep/autograd/ops/arithmetic.h"
#include "lockstep/core/error.h"
#include "support/message.h"

namespace lockstep::testing {
namespace {

// A leaf (2,) of ones whose gradient, 3, has arrived.
Variable with_gradient() {
  Variable w(ones({2}), true);
  product(w, Variable(full({2}, 3))).backward(ones({2}));
  return w;
}

TEST(SetData, TheSameShapeAndDtypeKeepTheGradient) {
  Variable w = with_gradient();
  const Tensor buffer = zeros({2});
  w.set_grad_buffer(buffer);
  const Tensor value = full({2}, 5);
  w.set_data(value);
  EXPECT_TRUE(w.data().shares_storage_with(value));
  ASSERT_TRUE(w.grad().defined());
  EXPECT_EQ(w.grad().data<float>()[1], 3);
  EXPECT_TRUE(w.grad_buffer().shares_storage_with(buffer));
  EXPECT_TRUE(w.requires_grad());
  product(w, w).backward(ones({2}));  // adds 2 * 5
  EXPECT_EQ(w.grad().data<float>()[1], 13);
}

class OtherValue : public ::testing::TestWithParam<Tensor> {};

// (A gradient kept from before would fail to add up much later, as in PyTorch.)
TEST_P(OtherValue, DropsTheGradientAndLearnsOn) {
  Variable w = with_gradient();
  w.set_grad_buffer(zeros({2}));
  w.set_data(GetParam().clone());
  EXPECT_FALSE(w.grad().defined());
  EXPECT_FALSE(w.grad_buffer().defined());
  EXPECT_TRUE(w.requires_grad());
  mul(w, w).backward(ones(w.shape(), {.dtype = w.dtype()}));
  ASSERT_TRUE(w.grad().defined());
  EXPECT_EQ(w.grad().dtype(), GetParam().dtype());
  EXPECT_EQ(w.grad().shape(), GetParam().shape());
  EXPECT_NO_THROW(w.set_grad(zeros(GetParam().shape(), {.dtype = GetParam().dtype()})));
}

INSTANTIATE_TEST_SUITE_P(SetData, OtherValue,
                         ::testing::Values(ones({2}, {.dtype = kF64}), ones({3}), ones({1, 2}),
                                           ones({}), zeros({0}), ones({2, 2}, {.dtype = kF64})));

TEST(SetData, AGraphRecordedBeforeKeepsTheOldValue) {
  Variable w(full({2}, 4), true);
  const Variable y = product(w, w);
  w.set_data(full({2}, 5));
  y.backward(ones({2}));
  EXPECT_EQ(w.grad().data<float>()[0], 8);
  // Its gradient has no place in a value of another shape or dtype.
  for (const Tensor& other : {ones({3}), ones({2}, {.dtype = kF64})}) {
    Variable v(ones({2}), true);
    const Variable z = product(v, v);
    v.set_data(other);
    EXPECT_HOLDS(message_of<Error>([&] { z.backward(ones({2})); }), "f32 (2,)");
    EXPECT_FALSE(v.grad().defined());
  }
}

TEST(SetData, WhatCanHaveNoGradientIsRefusedWhereOneIsRequired) {
  Variable w = with_gradient();
  const Tensor whole = ones({2}, {.dtype = kI64});
  EXPECT_HOLDS(message_of<Error>([&] { w.set_data(whole); }), "i64");
  EXPECT_EQ(w.dtype(), kF32);
  EXPECT_TRUE(w.grad().defined());
  Variable constant(ones({2}));
  constant.set_data(whole);
  EXPECT_EQ(constant.dtype(), kI64);
  EXPECT_THROW(constant.requires_grad_(), Error);
  EXPECT_THROW(w.set_data({}), Error);
  EXPECT_THROW(product(w, w).set_data(ones({2})), Error);
  EXPECT_THROW(Variable().set_data(ones({2})), Error);
}

}  // namespace
}  // namespace lockstep::testing
