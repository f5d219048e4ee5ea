// Sizes, strides and broadcasting, with the ends of their ranges.
#include "lockstep/core/shape.h"

#include <gtest/gtest.h>

#include "lockstep/core/error.h"
#include "support/message.h"

namespace lockstep::testing {
namespace {

constexpr std::int64_t kBig = std::int64_t{1} << 40;

TEST(Shape, HoldsUpToEightDimensions) {
  Shape shape;
  EXPECT_TRUE(shape.empty());
  for (int i = 1; i <= kMaxRank; ++i) shape.push_back(i);
  EXPECT_EQ(shape.rank(), kMaxRank);
  EXPECT_EQ(shape.back(), 8);
  EXPECT_EQ(shape.numel(), 40320);
  EXPECT_THROW(shape.push_back(9), Error);
  EXPECT_THROW((Shape{1, 2, 3, 4, 5, 6, 7, 8, 9}), Error);
  EXPECT_THROW(Shape::filled(9, 1), Error);
  EXPECT_THROW(shape.inserted(0, 1), Error);
}

TEST(Shape, ErasesAndInserts) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.erased(0), (Shape{3, 4}));
  EXPECT_EQ(shape.erased(2), (Shape{2, 3}));
  EXPECT_EQ(shape.inserted(0, 9), (Shape{9, 2, 3, 4}));
  EXPECT_EQ(shape.inserted(3, 9), (Shape{2, 3, 4, 9}));
  EXPECT_EQ(shape.vec(), (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_NE(shape, (Shape{2, 3}));
  EXPECT_EQ(Shape{}, Shape::filled(0, 5));
}

TEST(Shape, WritesItselfAsPythonTuplesDo) {
  EXPECT_EQ(Shape{}.str(), "()");
  EXPECT_EQ(Shape{3}.str(), "(3,)");
  EXPECT_EQ((Shape{2, 0, -1}).str(), "(2, 0, -1)");
}

TEST(Shape, CountsUpTo63Bits) {
  EXPECT_EQ(Shape{}.numel(), 1);
  EXPECT_EQ((Shape{kBig, 1 << 20, 4}).numel(), std::int64_t{1} << 62);
  EXPECT_HOLDS(message_of<Error>([] {
                 (Shape{kBig, kBig}).numel();
               }),
               "(1099511627776, 1099511627776)");
  EXPECT_EQ((Shape{kBig, kBig, 0}).numel(), 0);
  EXPECT_EQ((Shape{0, kBig, kBig}).numel(), 0);
}

TEST(Strides, RowMajorAndChannelsLast) {
  EXPECT_EQ(contiguous_strides({}), Strides{});
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Strides{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 3, 4, 5}, MemoryFormat::kChannelsLast), (Strides{60, 1, 15, 3}));
  EXPECT_EQ(contiguous_strides({1 << 20, 1 << 20, 8}), (Strides{std::int64_t{8} << 20, 8, 1}));
  EXPECT_THROW(contiguous_strides({2, 3, 4}, MemoryFormat::kChannelsLast), Error);
}

TEST(Strides, WithoutElementsNothingOverflows) {
  EXPECT_EQ(contiguous_strides({0, 3}), (Strides{3, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (Strides{4, 4, 1}));
  EXPECT_EQ(contiguous_strides({kBig, kBig, kBig, 0}).rank(), 4);
}

TEST(Broadcast, FollowsNumPy) {
  EXPECT_EQ(broadcast_shapes({}, {}, "op"), Shape{});
  EXPECT_EQ(broadcast_shapes({2, 3}, {}, "op"), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes({5, 1, 4}, {3, 1}, "op"), (Shape{5, 3, 4}));
  EXPECT_EQ(broadcast_shapes({1}, {7, 2}, "op"), (Shape{7, 2}));
  EXPECT_EQ(broadcast_shapes({2, 1}, {0}, "op"), (Shape{2, 0}));
  EXPECT_EQ(broadcast_shapes({1}, {0}, "op"), Shape{0});
}

TEST(Broadcast, NamesWhatDoesNotFit) {
  const std::string text = message_of<Error>([] { broadcast_shapes({2, 3}, {2, 4}, "add"); });
  for (const char* part : {"add", "(2, 3)", "(2, 4)"}) EXPECT_HOLDS(text, part);
  EXPECT_THROW(broadcast_shapes({0}, {2}, "add"), Error);
  EXPECT_THROW(broadcast_shapes({3, 2}, {3}, "add"), Error);
}

TEST(Axis, CountsFromBothEnds) {
  EXPECT_EQ(normalize_axis(0, 3, "op"), 0);
  EXPECT_EQ(normalize_axis(-1, 3, "op"), 2);
  EXPECT_EQ(normalize_axis(-3, 3, "op"), 0);
  EXPECT_THROW(normalize_axis(3, 3, "op"), Error);
  EXPECT_THROW(normalize_axis(-4, 3, "op"), Error);
  EXPECT_EQ(normalize_axis(-1, 0, "op"), 0) << "a number has one axis for those who ask";
  EXPECT_THROW(normalize_axis(1, 0, "op"), Error);
}

}  // namespace
}  // namespace lockstep::testing
