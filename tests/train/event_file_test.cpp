#include "lockstep/train/event_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

std::string hex(std::string_view bytes) {
  std::string out;
  for (unsigned char b : bytes) {
    char two[3];
    std::snprintf(two, sizeof(two), "%02x", b);
    out += two;
  }
  return out;
}

TEST(EventFile, Crc32cKnownAnswers) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

// Bytes made with TensorFlow's protocol buffers: Event(wall_time=1.5, step=300,
// summary=[Value(tag="Loss", simple_value=0.25)]).
TEST(EventFile, ScalarsEventBytes) {
  EXPECT_EQ(hex(scalars_event(1.5, 300, {{"Loss", 0.25f}})),
            "09000000000000f83f10ac022a0d0a0b0a044c6f7373150000803e");
  EXPECT_EQ(hex(version_event(0)), "0900000000000000001a0d627261696e2e4576656e743a32");
}

TEST(EventFile, RecordFraming) {
  const std::string record = tf_record("abc");
  ASSERT_EQ(record.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(hex(record.substr(0, 8)), "0300000000000000");
  EXPECT_EQ(record.substr(12, 3), "abc");
}

TEST(EventFile, GrowsOnDiskWithEveryAdd) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "event_file_test" / "run";
  std::filesystem::remove_all(folder);
  EventFile file(folder.string());
  const auto before = std::filesystem::file_size(file.path());
  file.add(1, {{"LR", 0.1f}, {"Loss/train", 2.f}});
  EXPECT_GT(std::filesystem::file_size(file.path()), before);
}

TEST(EventFile, UnwritableFolderIsNamed) {
  try {
    EventFile file("/proc/nowhere/run");
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("/proc/nowhere/run"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace lockstep::train
