#include <gtest/gtest.h>

#include "autograd/product.h"

namespace lockstep::testing {
namespace {

std::string backward_error(const Variable& y) {
  try {
    y.backward();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(InPlace, GradientGoesThrough) {
  Variable a = leaf(3);
  Variable y = product(a, leaf(2, false));
  scale_(y, 5);
  EXPECT_EQ(y.item(), 30);
  y.backward();
  EXPECT_EQ(grad_of(a), 10);
}

TEST(InPlace, ChangedSavedTensorIsAnErrorThatNamesTheOperation) {
  Variable a = leaf(3);
  Variable y = product(a, leaf(2, false));
  Variable z = product(y, y);
  scale_(y, 5);
  const std::string error = backward_error(z);
  EXPECT_NE(error.find("product"), std::string::npos) << error;
  EXPECT_NE(error.find("in place"), std::string::npos) << error;
}

TEST(InPlace, ChangeThroughAViewIsNoticedToo) {
  Variable a = leaf(3);
  Variable y = product(a, a);
  zero_(a.data().view({1, 1}));
  EXPECT_NE(backward_error(y).find("in place"), std::string::npos);
}

TEST(InPlace, LeafThatRequiresGradientIsRefused) {
  Variable a = leaf(3);
  EXPECT_THROW(scale_(a, 2), Error);
  EXPECT_EQ(a.item(), 3);
  NoGradGuard guard;
  scale_(a, 2);
  EXPECT_EQ(a.item(), 6);
}

TEST(InPlace, ViewInGraphIsRefused) {
  Variable a = leaf(3);
  Variable v = view_of(product(a, a));
  EXPECT_THROW(scale_(v, 2), Error);
}

TEST(InPlace, StaleViewIsRefused) {
  Variable a = leaf(3);
  Variable y = product(a, a);
  Variable v = view_of(y);
  scale_(y, 2);
  EXPECT_THROW(product(v, v), Error);
  EXPECT_NO_THROW(product(view_of(y), leaf(1, false)));
}

TEST(InPlace, DetachSharesTheVersionCounter) {
  Variable a = leaf(3);
  Variable y = product(a, leaf(2, false));
  Variable z = product(y, y);
  Variable d = y.detach();
  scale_(d, 2);
  EXPECT_NE(backward_error(z).find("in place"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::testing
