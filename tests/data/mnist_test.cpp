#include "lockstep/data/mnist.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "lockstep/core/error.h"
#include "lockstep/data/digits.h"
#include "support/expect_close.h"
#include "support/gzip.h"
#include "support/message.h"
#include "support/temp_folder.h"

namespace lockstep::data {
namespace {

using testing::gzipped;
using testing::message_of;
using testing::TempFolder;
using testing::write_bytes;

std::string number(int value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string images_file(int n) {
  std::string bytes = std::string("\0\0\x08\3", 4) + number(n) + number(28) + number(28);
  for (int i = 0; i < n * 28 * 28; ++i) bytes.push_back(static_cast<char>(i % 256));
  return bytes;
}

std::string labels_file(const std::vector<int>& labels) {
  std::string bytes = std::string("\0\0\x08\1", 4) + number(static_cast<int>(labels.size()));
  for (const int label : labels) bytes.push_back(static_cast<char>(label));
  return bytes;
}

TEST(Mnist, AFolderIsReadRawAndGzippedUnderEachName) {
  for (const std::string place : {"", "MNIST/raw/", "raw/"})
    for (const bool gzip : {false, true})
      for (const std::string separator : {"-", "."}) {
        const TempFolder folder;
        std::filesystem::create_directories(folder / place);
        const auto put = [&](const std::string& name, const std::string& bytes) {
          write_bytes(folder / (place + name + (gzip ? ".gz" : "")), gzip ? gzipped(bytes) : bytes);
        };
        put("train-images" + separator + "idx3-ubyte", images_file(3));
        put("train-labels" + separator + "idx1-ubyte", labels_file({7, 0, 9}));
        const auto set = load_mnist(folder.path(), Split::kTrain);
        ASSERT_EQ(set->size(), 3);
        const Batch batch = set->get_batch(std::vector<std::int64_t>{2, 0});
        EXPECT_EQ(batch.data.shape(), Shape({2, 1, 28, 28}));
        EXPECT_EQ(batch.data.dtype(), kF32);
        EXPECT_TRUE(batch.data.is_contiguous());
        EXPECT_TRUE(batch.data.is_contiguous(MemoryFormat::kChannelsLast));
        EXPECT_EQ(batch.data.data<float>()[784 + 51], 51.0f / 255.0f);
        EXPECT_EQ(batch.data.data<float>()[784 + 255], 1.0f);
        EXPECT_SAME_BITS(batch.target, tensor<std::int64_t>({9, 7}));
        EXPECT_SAME_BITS(set->get(2).data, batch.data.select(0, 0));
        EXPECT_EQ(set->get(1).target.item<std::int64_t>(), 0);
        EXPECT_ANY_THROW(set->get(3));
      }
}

TEST(Mnist, WhatIsWrongWithAFolderIsNamed) {
  const TempFolder folder;
  const auto message = [&] {
    return message_of<Error>([&] { load_mnist(folder.path(), Split::kTest); });
  };
  EXPECT_HOLDS(message(),
               "t10k-images-idx3-ubyte, t10k-images-idx3-ubyte.gz, "
               "t10k-images.idx3-ubyte, t10k-images.idx3-ubyte.gz");
  EXPECT_HOLDS(message(), folder.path());
  const std::string images = folder / "t10k-images-idx3-ubyte";
  const std::string labels = folder / "t10k-labels-idx1-ubyte";
  write_bytes(images, images_file(3));
  EXPECT_HOLDS(message(), "t10k-labels-idx1-ubyte");
  write_bytes(labels, labels_file({1, 2}));
  EXPECT_HOLDS(message(), "3 images but 2 labels");
  write_bytes(labels, labels_file({1, 10, 2}));
  EXPECT_HOLDS(message(), "label 10 of image 1 is outside 0..9");
  write_bytes(labels, labels_file({1, 2, 3}).substr(0, 10));
  EXPECT_HOLDS(message(), "t10k-labels-idx1-ubyte\": damaged at byte");
  write_bytes(labels, images_file(3));
  EXPECT_HOLDS(message(), "must hold (N,) of u8 but holds (3, 28, 28) of u8");
  write_bytes(images, labels_file({1, 2, 3}));
  EXPECT_HOLDS(message(), "must hold (N,H,W) of u8 but holds (3,) of u8");
  write_bytes(images, "hello, world");
  EXPECT_HOLDS(message(), "not an IDX file");
  write_bytes(images, images_file(0));
  write_bytes(labels, labels_file({}));
  EXPECT_HOLDS(message(), "the data set is empty");
}

TEST(Mnist, TheRealSetIsRead) {
  const std::string folder = LOCKSTEP_SOURCE_DIR "/../shared/data/mnist";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no MNIST at " << folder;
  const auto train = load_mnist(folder, Split::kTrain);
  const auto test = load_mnist(folder, Split::kTest);
  EXPECT_EQ(train->size(), 60'000);
  EXPECT_EQ(test->size(), 10'000);
  EXPECT_EQ(train->images().shape(), Shape({60'000, 1, 28, 28}));
  std::vector<std::int64_t> first_labels;
  for (int i = 0; i < 8; ++i) first_labels.push_back(train->get(i).target.item<std::int64_t>());
  EXPECT_EQ(first_labels, std::vector<std::int64_t>({5, 0, 4, 1, 9, 2, 1, 3}));
  double sum = 0;
  const auto* pixel = train->images().data<std::uint8_t>();
  for (std::int64_t i = 0; i < train->images().numel(); ++i) sum += pixel[i];
  // The mean that everybody normalises MNIST with.
  EXPECT_NEAR(sum / 255 / static_cast<double>(train->images().numel()), 0.1307, 5e-5);
}

TEST(Digits, HasEveryClassInBothSplits) {
  const auto train = load_digits(Split::kTrain);
  const auto test = load_digits(Split::kTest);
  EXPECT_EQ(train->size() + test->size(), 1797);
  EXPECT_EQ(test->size(), 355);
  EXPECT_EQ(train->images().shape(), Shape({train->size(), 1, 28, 28}));
  // Counts of the table's classes, and a fifth of each.
  constexpr std::array<int, 10> kCounts = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
  std::array<int, 10> trained{}, tested{};
  for (std::int64_t i = 0; i < train->size(); ++i)
    ++trained[static_cast<std::size_t>(train->labels().data<std::int64_t>()[i])];
  for (std::int64_t i = 0; i < test->size(); ++i)
    ++tested[static_cast<std::size_t>(test->labels().data<std::int64_t>()[i])];
  for (std::size_t c = 0; c < 10; ++c) {
    EXPECT_EQ(trained[c] + tested[c], kCounts[c]);
    EXPECT_EQ(tested[c], kCounts[c] / 5);
  }
}

// Each image is the bilinear enlargement that digits.h describes, computed here in double.
TEST(Digits, ImagesAreTheEnlargedOriginals) {
  constexpr int kFirst[8][8] = {// the table's first line, a zero
                                {0, 0, 5, 13, 9, 1, 0, 0},   {0, 0, 13, 15, 10, 15, 5, 0},
                                {0, 3, 15, 2, 0, 11, 8, 0},  {0, 4, 12, 0, 0, 8, 8, 0},
                                {0, 5, 8, 0, 0, 9, 8, 0},    {0, 4, 11, 0, 1, 12, 7, 0},
                                {0, 2, 14, 5, 10, 12, 0, 0}, {0, 0, 6, 13, 10, 0, 0, 0}};
  const auto train = load_digits(Split::kTrain);
  EXPECT_EQ(train->get(0).target.item<std::int64_t>(), 0);
  const auto* image = train->images().data<std::uint8_t>();
  const auto source = [](int d) { return std::clamp((d + 0.5) * 8 / 28 - 0.5, 0.0, 7.0); };
  for (int y = 0; y < 28; ++y)
    for (int x = 0; x < 28; ++x) {
      const double v = source(y), h = source(x);
      const int top = static_cast<int>(v), left = static_cast<int>(h);
      const int bottom = std::min(top + 1, 7), right = std::min(left + 1, 7);
      const double b = v - top, r = h - left;
      const double value = (1 - b) * ((1 - r) * kFirst[top][left] + r * kFirst[top][right]) +
                           b * ((1 - r) * kFirst[bottom][left] + r * kFirst[bottom][right]);
      EXPECT_NEAR(image[y * 28 + x], value * 255 / 16, 0.5 + 1e-9) << y << ", " << x;
    }
}

}  // namespace
}  // namespace lockstep::data
