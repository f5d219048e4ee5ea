// Copies between layouts against the plainest loop there is.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lockstep/core/dispatch.h"
#include "lockstep/core/error.h"
#include "lockstep/core/tensor.h"
#include "support/expect_close.h"
#include "support/message.h"

namespace lockstep::testing {
namespace {

// A view of `shape` with shuffled axes, gaps and an offset; every byte of its storage is `filler`.
Tensor scattered(const Shape& shape, DType dtype, std::uint8_t filler, std::mt19937* random) {
  std::vector<int> order(static_cast<std::size_t>(shape.rank()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::shuffle(order.begin(), order.end(), *random);
  const std::int64_t offset = (*random)() % 4;
  Strides strides = Shape::filled(shape.rank(), 1);
  std::int64_t step = 1 + (*random)() % 2;
  for (int axis : order) {
    strides[axis] = step;
    step = step * std::max<std::int64_t>(shape[axis], 1) + ((*random)() % 3 == 0 ? 1 : 0);
  }
  const Tensor memory = empty({offset + step + 1}, {.dtype = dtype});
  std::fill_n(static_cast<std::uint8_t*>(memory.data()), memory.nbytes(), filler);
  return memory.as_strided(shape, strides, offset);
}

// f(bytes into the storage) for each element in row-major order.
void for_each_element(const Tensor& t, const auto& f) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(t.dim()), 0);
  for (std::int64_t n = t.numel(); n > 0; --n) {
    std::int64_t at = t.offset();
    for (int a = 0; a < t.dim(); ++a) at += index[static_cast<std::size_t>(a)] * t.strides()[a];
    f(static_cast<std::uint8_t*>(t.storage()->data()) +
      at * static_cast<std::int64_t>(t.itemsize()));
    for (int a = t.dim() - 1; a >= 0; --a) {
      if (++index[static_cast<std::size_t>(a)] < t.shape()[a]) break;
      index[static_cast<std::size_t>(a)] = 0;
    }
  }
}

TEST(CopyElements, AnyStridesAndSizesAndNothingBeside) {
  std::mt19937 random(3);
  const DType dtypes[] = {kU8, kF16, kF32, kI64};
  for (int round = 0; round < 400; ++round) {
    Shape shape;
    for (int rank = static_cast<int>(random() % 6); rank > 0; --rank)
      shape.push_back(random() % 12 == 0 ? 0 : 1 + random() % 5);
    const DType dtype = dtypes[round % 4];
    const Tensor src = scattered(shape, dtype, 0x11, &random);
    const Tensor dst = scattered(shape, dtype, 0xEE, &random);
    const std::size_t width = src.itemsize();
    int value = 0;
    for_each_element(src, [&](std::uint8_t* p) {
      for (std::size_t b = 0; b < width; ++b) p[b] = static_cast<std::uint8_t>(value * 7 + 3 * b);
      value = (value + 1) % 30;  // never the filler 0xEE
    });
    std::vector<std::uint8_t> expected(
        static_cast<std::uint8_t*>(dst.storage()->data()),
        static_cast<std::uint8_t*>(dst.storage()->data()) + dst.storage()->bytes());
    std::vector<const std::uint8_t*> sources;
    for_each_element(src, [&](std::uint8_t* p) { sources.push_back(p); });
    std::size_t next = 0;
    for_each_element(dst, [&](std::uint8_t* p) {
      std::copy_n(sources[next++], width,
                  expected.data() + (p - static_cast<std::uint8_t*>(dst.storage()->data())));
    });
    const std::uint64_t version = dst.version();
    copy_elements(dst, src);
    EXPECT_EQ(dst.version(), version + 1);
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(),
                           static_cast<std::uint8_t*>(dst.storage()->data())))
        << shape.str() << " from " << src.strides().str() << " to " << dst.strides().str();
    EXPECT_SAME_BITS(src.clone(), src);
    EXPECT_TRUE(src.contiguous().is_contiguous());
  }
}

TEST(CopyElements, RefusesWhatIsNotAlike) {
  EXPECT_HOLDS(message_of<Error>([] { copy_elements(ones({2, 3}), ones({3, 2})); }), "(3, 2)");
  EXPECT_THROW(copy_elements(ones({2}), ones({2}, {.dtype = kI32})), Error);
}

TEST(Clone, KeepsTheLayoutOfADenseTensor) {
  const Tensor last = ones({2, 3, 4, 5}, {.format = MemoryFormat::kChannelsLast});
  EXPECT_EQ(last.clone().strides(), last.strides());
  EXPECT_EQ(last.contiguous().strides(), (Strides{60, 20, 5, 1}));
  EXPECT_TRUE(last.contiguous(MemoryFormat::kChannelsLast).shares_storage_with(last));
  EXPECT_EQ(ones({3, 1}).expand({3, 4}).clone().strides(), (Strides{4, 1}));
}

TEST(Zero, ClearsTheViewAlone) {
  const Tensor t = ones({4, 4});
  zero_(t.slice(0, 1, 3).slice(1, 1, 3));
  double sum = 0;
  for (int i = 0; i < 16; ++i) sum += element(t, i);
  EXPECT_EQ(sum, 12);
  zero_(t.slice(1, 0, 4, 3));
  EXPECT_CLOSE(
      t,
      tensor({0.f, 1.f, 1.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 1.f, 1.f, 0.f},
             {4, 4}),
      0, 0);
}

}  // namespace
}  // namespace lockstep::testing
