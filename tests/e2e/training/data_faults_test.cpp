// Data that can't be trained on: one line that names the file and what is wrong with it.
#include <gtest/gtest.h>

#include <filesystem>

#include "e2e/training/tiny_mnist.h"
#include "e2e/training/train_job.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

Words on_data(const TempFolder& folder, const std::string& data, const Words& flags = {}) {
  return trainer(folder, Words{"-d", data, "-b", "4", "-e", "1"} + flags);
}

TEST(TinyData, TrainsWhenItIsWhole) {
  const TempFolder folder;
  const std::string out = run_well(on_ranks(2, on_data(folder, write_tiny_mnist(folder))));
  EXPECT_HOLDS(out, "mnist: 12 training and 5 validation images");
}

struct Damage {
  const char* name;
  const char* file;
  std::string contents;
  Words complaint;  // all have to be in the one line
};

class DamagedData : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedData, IsNamedInOneLine) {
  const TempFolder folder;
  const std::string data = write_tiny_mnist(folder);
  const std::string path = data + "/" + GetParam().file;
  write_bytes(path, GetParam().contents);
  Job job(on_ranks(2, on_data(folder, data)));
  EXPECT_EQ(job.wait(), 1);
  EXPECT_LT(job.seconds(), 5);
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_HOLDS(job.complaints()[0], "lockstep-train: rank ");
  for (const std::string& part : GetParam().complaint) EXPECT_HOLDS(job.complaints()[0], part);
  EXPECT_FALSE(fs::exists(run_files(folder).path)) << "a run's folder was made for nothing";
}

std::string cut(std::string file, std::size_t bytes) {
  file.resize(file.size() - bytes);
  return file;
}

INSTANTIATE_TEST_SUITE_P(
    Data, DamagedData,
    ::testing::Values(
        Damage{"Truncated", kTrainImages, cut(some_images(12), 100), {kTrainImages}},
        Damage{"TruncatedInItsHead", kTestLabels, "\0\0\x08", {kTestLabels}},
        Damage{"Empty", kTrainLabels, "", {kTrainLabels}},
        Damage{"NoIdx", kTrainImages, "PNG, or what else there may be", {kTrainImages}},
        Damage{"TooLong", kTestImages, some_images(5) + "x", {kTestImages}},
        Damage{"LabelTen", kTrainLabels, some_labels(12, 10), {"label", "10", "6"}},
        Damage{"MoreImagesThanLabels", kTrainLabels, some_labels(11), {"12", "11"}},
        Damage{"FewerImagesThanLabels", kTestLabels, some_labels(6), {"5", "6"}},
        Damage{"ImagesWhereLabelsBelong", kTrainLabels, some_images(12), {kTrainLabels}},
        Damage{"HugeDimensions",
               kTrainImages,
               idx({0xffffffffu, 0xffffffffu, 0xffffffffu}, ""),
               {kTrainImages}}),
    [](const auto& info) { return info.param.name; });

TEST(Data, AMissingFolderAndAMissingFileAreNamed) {
  const TempFolder folder;
  Job nowhere(on_ranks(2, on_data(folder, folder / "nowhere")));
  EXPECT_EQ(nowhere.wait(), 1);
  ASSERT_EQ(nowhere.complaints().size(), 1u) << nowhere.err();
  EXPECT_HOLDS(nowhere.complaints()[0], folder / "nowhere");
  const std::string data = write_tiny_mnist(folder);
  fs::remove(data + "/" + kTestLabels);
  Job half(on_ranks(2, on_data(folder, data)));
  EXPECT_EQ(half.wait(), 1);
  ASSERT_EQ(half.complaints().size(), 1u) << half.err();
  EXPECT_HOLDS(half.complaints()[0], kTestLabels);
}

TEST(Data, AnEmptySetIsRefused) {
  const TempFolder folder;
  Job job(on_ranks(2, on_data(folder, write_tiny_mnist(folder, 0))));
  EXPECT_EQ(job.wait(), 1);
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_HOLDS(job.complaints()[0], "empty");
}

TEST(Data, MoreRanksThanExamplesAreRefused) {
  const TempFolder folder;
  Job job(on_ranks(3, on_data(folder, write_tiny_mnist(folder, 2))));
  EXPECT_EQ(job.wait(), 1);
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_HOLDS(job.complaints()[0], "there are 2");
  EXPECT_HOLDS(job.complaints()[0], "3 ranks");
  EXPECT_LT(job.seconds(), 5);
}

TEST(Data, ImagesOfTwoSizesAreRefused) {
  const TempFolder folder;
  const std::string data = write_tiny_mnist(folder);
  write_bytes(data + "/" + kTestImages, some_images(5, 9));
  Job job(on_data(folder, data));
  EXPECT_EQ(job.wait(), 1);
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_HOLDS(job.complaints()[0], "(1, 8, 8)");
  EXPECT_HOLDS(job.complaints()[0], "(1, 9, 9)");
}

TEST(Data, RanksWithDifferentSetsAreRefused) {
  const TempFolder folder, other;
  const std::string a = write_tiny_mnist(folder), b = write_tiny_mnist(other, 20);
  Job job(on_ranks(2, by_rank("[ $RANK = 0 ] && d='" + a + "' || d='" + b + "'; exec \"$@\" -d $d",
                              on_data(folder, a))));
  EXPECT_EQ(job.wait(), 1);
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_HOLDS(job.complaints()[0], "training images differs: rank 0=12, rank 1=20");
}

}  // namespace
}  // namespace lockstep::testing
