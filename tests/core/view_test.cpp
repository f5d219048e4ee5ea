// Views: new sizes and strides on the same elements.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "lockstep/core/error.h"
#include "lockstep/core/tensor.h"
#include "support/expect_close.h"
#include "support/message.h"

namespace lockstep::testing {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

Tensor counting(const Shape& shape) { return arange(shape.numel()).view(shape); }

std::int64_t at(const Tensor& t, std::initializer_list<std::int64_t> index) {
  std::int64_t offset = 0;
  int axis = 0;
  for (std::int64_t i : index) offset += i * t.strides()[axis++];
  return t.data<std::int64_t>()[offset];
}

TEST(View, SharesStorageAndVersion) {
  const Tensor t = counting({2, 3});
  const Tensor v = t.t().select(0, 1);
  EXPECT_TRUE(v.shares_storage_with(t));
  EXPECT_FALSE(t.clone().shares_storage_with(t));
  const std::uint64_t before = t.version();
  zero_(v);
  EXPECT_GT(t.version(), before);
  EXPECT_CLOSE(t, tensor<std::int64_t>({0, 0, 2, 3, 0, 5}, {2, 3}), 0, 0);
}

TEST(View, PermutesAndTransposes) {
  const Tensor t = counting({2, 3, 4});
  const Tensor p = t.permute({2, -3, 1});
  EXPECT_EQ(p.shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(p.strides(), (Strides{1, 12, 4}));
  EXPECT_EQ(at(p, {3, 1, 2}), at(t, {1, 2, 3}));
  EXPECT_EQ(t.transpose(0, -1).shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(counting({2, 3}).t().shape(), (Shape{3, 2}));
  EXPECT_EQ(ones({}).transpose(0, -1).dim(), 0);
  EXPECT_THROW(t.t(), Error);
  EXPECT_THROW(t.permute({0, 1}), Error);
  EXPECT_THROW(t.permute({0, 1, 1}), Error);
  EXPECT_THROW(t.permute({0, 1, 3}), Error);
  EXPECT_THROW(t.transpose(0, 3), Error);
}

// start, end, step and what of 0..9 is left.
struct SliceCase {
  std::int64_t start, end, step;
  std::vector<std::int64_t> left;
};

TEST(View, SlicesAsPythonDoes) {
  const SliceCase cases[] = {
      {0, 10, 1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
      {2, 5, 1, {2, 3, 4}},
      {-3, kMost, 1, {7, 8, 9}},
      {-100, -8, 1, {0, 1}},
      {1, 9, 3, {1, 4, 7}},
      {1, 8, 3, {1, 4, 7}},
      {0, 10, 9, {0, 9}},
      {9, 10, kMost, {9}},
      {5, 5, 1, {}},
      {7, 3, 1, {}},
      {10, 20, 1, {}},
      {std::numeric_limits<std::int64_t>::min(), kMost, kMost, {0}},
  };
  const Tensor wide = counting({10, 3});
  for (const SliceCase& c : cases) {
    const Tensor s = wide.slice(0, c.start, c.end, c.step);
    ASSERT_EQ(s.size(0), static_cast<std::int64_t>(c.left.size())) << c.start << ':' << c.end;
    for (std::size_t i = 0; i < c.left.size(); ++i)
      EXPECT_EQ(at(s, {static_cast<std::int64_t>(i), 2}), c.left[i] * 3 + 2);
  }
  EXPECT_THROW(wide.slice(0, 0, 1, 0), Error);
  EXPECT_THROW(wide.slice(0, 0, 1, -1), Error);
  EXPECT_THROW(wide.slice(2, 0, 1), Error);
  EXPECT_THROW(ones({}).slice(0, 0, 1), Error);
}

TEST(View, SelectsFromBothEnds) {
  const Tensor t = counting({2, 3, 4});
  EXPECT_EQ(at(t.select(1, -1), {1, 3}), 23);
  EXPECT_EQ(t.select(2, 0).strides(), (Strides{12, 4}));
  EXPECT_HOLDS(message_of<Error>([&] { t.select(1, 3); }), "(2, 3, 4)");
  EXPECT_THROW(t.select(1, -4), Error);
  EXPECT_THROW(ones({}).select(0, 0), Error);
  EXPECT_THROW(empty({0, 2}).select(0, 0), Error);
}

TEST(View, SqueezesAndUnsqueezes) {
  const Tensor t = counting({2, 1, 3});
  EXPECT_EQ(t.squeeze(1).shape(), (Shape{2, 3}));
  EXPECT_EQ(t.squeeze(0).shape(), t.shape());
  for (int axis = -3; axis <= 2; ++axis) {
    const Tensor u = counting({2, 3}).unsqueeze(axis);
    EXPECT_EQ(u.size(axis), 1);
    EXPECT_TRUE(u.is_contiguous());
  }
  EXPECT_EQ(ones({}).unsqueeze(0).shape(), Shape{1});
  EXPECT_EQ(ones({}).squeeze(0).dim(), 0);
  EXPECT_THROW(t.unsqueeze(4), Error);
}

TEST(View, ExpandsWithStrideZero) {
  const Tensor t = counting({3, 1});
  const Tensor e = t.expand({2, -1, 4});
  EXPECT_EQ(e.shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(e.strides(), (Strides{0, 1, 0}));
  EXPECT_EQ(at(e, {1, 2, 3}), 2);
  EXPECT_EQ(t.expand({3, 0}).numel(), 0);
  EXPECT_EQ(ones({}).expand({std::int64_t{1} << 40}).numel(), std::int64_t{1} << 40);
  EXPECT_THROW(t.expand({3}), Error);
  EXPECT_THROW(t.expand({2, 1}), Error);
  EXPECT_THROW(t.expand({-1, 3, 1}), Error) << "a new axis has no size to keep";
  EXPECT_THROW(t.expand({3, -2}), Error);
}

TEST(View, AsStridedStaysInsideTheStorage) {
  const Tensor t = counting({12});
  EXPECT_EQ(at(t.as_strided({3, 4}, {1, 3}, 0), {2, 3}), 11);
  EXPECT_EQ(at(t.as_strided({4}, {-3}, 11), {3}), 2);
  EXPECT_EQ(t.as_strided({0}, {100}, 12).numel(), 0);
  EXPECT_THROW(t.as_strided({3, 4}, {1, 3}, 1), Error);
  EXPECT_THROW(t.as_strided({4}, {-4}, 11), Error);
  EXPECT_THROW(t.as_strided({2}, {kMost}, 0), Error);
  EXPECT_THROW(t.as_strided({3}, {kMost}, 0), Error) << "3 strides leave 64 bits";
  EXPECT_THROW(t.as_strided({2}, {1, 1}, 0), Error);
  EXPECT_THROW(t.as_strided({-1}, {1}, 0), Error);
  EXPECT_THROW(t.as_strided({0}, {1}, -1), Error);
  EXPECT_THROW(t.as_strided({0}, {1}, 13), Error);
}

TEST(View, NewShapesOnTheSameElements) {
  const Tensor t = counting({2, 3, 4});
  EXPECT_EQ(t.view({6, -1}).shape(), (Shape{6, 4}));
  EXPECT_EQ(t.view({-1}).shape(), Shape{24});
  EXPECT_EQ(t.view({1, 24, 1}).strides()[1], 1);
  EXPECT_EQ(counting({1}).view({}).dim(), 0);
  EXPECT_EQ(counting({}).view({1, 1}).shape(), (Shape{1, 1}));
  // Axes that do not lie one after another cannot be merged, but each can be cut.
  const Tensor p = t.permute({1, 0, 2});
  EXPECT_THROW(p.view({6, 4}), Error);
  EXPECT_EQ(at(p.view({3, 2, 2, 2}), {2, 1, 1, 0}), at(t, {1, 2, 2}));
  EXPECT_EQ(p.reshape({6, 4}).strides(), (Strides{4, 1}));
  EXPECT_TRUE(t.slice(1, 0, 2).view({2, 8}).shares_storage_with(t));
  EXPECT_THROW(t.slice(1, 0, 2).view({16}), Error);
  for (const Shape& wrong : {Shape{5, 5}, Shape{-1, -1}, Shape{5, -1}, Shape{-2, -12}, Shape{}})
    EXPECT_THROW(t.view(wrong), Error) << wrong.str();
  EXPECT_THROW(t.view({std::int64_t{1} << 40, std::int64_t{1} << 40, -1}), Error);
}

TEST(View, ShapesWithoutElements) {
  const Tensor t = empty({0, 3});
  EXPECT_EQ(t.view({-1, 3}).shape(), (Shape{0, 3}));
  EXPECT_EQ(t.view({2, 0, 7}).shape(), (Shape{2, 0, 7}));
  EXPECT_THROW(t.view({0, -1}), Error) << "anything would fit";
  EXPECT_THROW(t.view({1}), Error);
  EXPECT_EQ(t.t().reshape({5, 0}).shape(), (Shape{5, 0}));
}

// Every element of any view in any layout is the one that row-major order says.
TEST(View, ReshapeKeepsRowMajorOrderInAnyLayout) {
  std::mt19937 random(7);
  const Shape shapes[] = {{24}, {2, 12}, {4, 6}, {2, 3, 4}, {3, 2, 2, 2}, {1, 24, 1}, {2, 1, 3, 4}};
  int views = 0, copies = 0;
  for (int round = 0; round < 300; ++round) {
    const Shape& from = shapes[random() % std::size(shapes)];
    std::vector<int> axes(static_cast<std::size_t>(from.rank()));
    for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(i);
    std::shuffle(axes.begin(), axes.end(), random);
    Tensor t = counting(from).permute(axes);
    if (random() % 3 == 0) t = t.unsqueeze(0).expand(t.shape().inserted(0, 2)).slice(0, 1, 2);
    const Tensor plain = t.clone().contiguous();
    const Shape& to = shapes[random() % std::size(shapes)];
    const Tensor reshaped = t.reshape(to);
    EXPECT_EQ(reshaped.shape(), to);
    ++(reshaped.shares_storage_with(t) ? views : copies);
    EXPECT_SAME_BITS(reshaped, plain.view(to));
  }
  EXPECT_GT(views, 50);
  EXPECT_GT(copies, 50);
}

// Offsets beyond 32 bits, on pages that are never touched but for two.
TEST(View, OffsetsHave64Bits) {
  const std::int64_t rows = 300'000, columns = 8'000;
  Tensor table;
  try {
    table = empty({rows, columns}, {.dtype = kU8});
  } catch (const OutOfMemoryError&) {
    GTEST_SKIP() << "no 2.4 GB of address space";
  }
  table.data<std::uint8_t>()[268'435 * columns + 7'999] = 5;
  table.data<std::uint8_t>()[299'999 * columns + 7'999] = 7;
  EXPECT_EQ(table.select(0, 268'435).select(0, -1).item(), 5);
  EXPECT_EQ(table.view({-1}).slice(0, -1, kMost).item(), 7);
  const Tensor corner = table.t().slice(0, 7'999, 8'000).slice(1, 268'435, kMost, 31'564).clone();
  EXPECT_EQ(element(corner, 0), 5);
  EXPECT_EQ(element(corner, 1), 7);
  table = Tensor();
  CpuAllocator::instance().empty_cache();
}

}  // namespace
}  // namespace lockstep::testing
