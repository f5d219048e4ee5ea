#include "lockstep/core/idx.h"

#include <gtest/gtest.h>

#include "lockstep/core/error.h"
#include "support/expect_close.h"
#include "support/gzip.h"
#include "support/message.h"
#include "support/temp_folder.h"

namespace lockstep {
namespace {

using testing::gzipped;
using testing::message_of;
using testing::read_bytes;
using testing::TempFolder;
using testing::write_bytes;

std::string bytes_of(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes.push_back(static_cast<char>(value));
  return bytes;
}

TEST(Idx, EveryTypeIsReadRawAndGzipped) {
  const std::pair<std::string, Tensor> cases[] = {
      {bytes_of({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255}),
       tensor<std::uint8_t>({1, 2, 3, 4, 5, 255}, {2, 3})},
      {bytes_of({0, 0, 12, 1, 0, 0, 0, 2, 0, 0, 1, 2, 255, 255, 255, 254}),
       tensor<std::int32_t>({258, -2})},
      {bytes_of({0, 0, 13, 1, 0, 0, 0, 1, 0x3f, 0x80, 0, 1}), tensor<float>({1.0f + 0x1p-23f})},
      {bytes_of({0, 0, 14, 1, 0, 0, 0, 1, 0xbf, 0xf0, 0, 0, 0, 0, 0, 0}), tensor<double>({-1.0})},
      {bytes_of({0, 0, 8, 0, 7}), tensor<std::uint8_t>({7}, {})},
      {bytes_of({0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 28}),
       zeros({0, 28, 28}, {.dtype = kU8})},
  };
  const TempFolder folder;
  for (const auto& [bytes, expected] : cases) {
    write_bytes(folder / "x", bytes);
    EXPECT_SAME_BITS(load_idx(folder / "x"), expected);
    write_bytes(folder / "x", gzipped(bytes));  // told by its contents, whatever its name
    EXPECT_SAME_BITS(load_idx(folder / "x"), expected);
    const std::size_t half = bytes.size() / 2;  // gzip members may follow one another
    write_bytes(folder / "x", gzipped(bytes.substr(0, half)) + gzipped(bytes.substr(half)));
    EXPECT_SAME_BITS(load_idx(folder / "x"), expected);
  }
}

TEST(Idx, PythonsFilesAreRead) {
  for (const char* name : {"i32.idx", "i32.idx.gz"}) {
    const Tensor x =
        load_idx(std::string(LOCKSTEP_SOURCE_DIR "/tests/reference/values/files/") + name);
    EXPECT_SAME_BITS(x, tensor<std::int32_t>({0, -1, 2, -3, 4, INT32_MAX}, {2, 3}));
  }
}

TEST(Idx, ALargeGzippedFileIsRead) {
  const TempFolder folder;
  std::string bytes = bytes_of({0, 0, 8, 1, 0, 0x10, 0, 0});
  for (int i = 0; i < 1 << 20; ++i) bytes.push_back(static_cast<char>(i * 7 ^ i >> 9));
  write_bytes(folder / "x.gz", gzipped(bytes));
  const Tensor x = load_idx(folder / "x.gz");
  ASSERT_EQ(x.numel(), 1 << 20);
  EXPECT_EQ(std::memcmp(x.data(), bytes.data() + 8, x.nbytes()), 0);
}

TEST(Idx, DamageIsAnErrorWithOffsetAndReason) {
  const std::string good = bytes_of({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6});
  const auto replaced = [&](std::size_t at, int value) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(value);
    return bytes;
  };
  std::string flipped = gzipped(good);
  flipped[flipped.size() - 6] ^= 1;  // of the checksum
  const std::pair<std::string, const char*> cases[] = {
      {"", "byte 0"},
      {good.substr(0, 3), "byte 3"},
      {good.substr(0, 10), "byte 10"},
      {good.substr(0, 17), "needs 6 bytes"},
      {good + "x", "more data"},
      {replaced(0, 'P'), "not an IDX file"},
      {replaced(2, 9), "0x09 (i8)"},
      {replaced(2, 11), "0x0B (i16)"},
      {replaced(2, 7), "0x07 is unknown"},
      {replaced(3, 200), "200 dimensions"},
      {bytes_of({0, 0, 14, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}),
       "too many bytes"},
      {gzipped(bytes_of({0, 0, 8, 2, 127, 0, 0, 0, 0, 0, 0, 28})), "the file is too short"},
      {gzipped(good).substr(0, 25), "gzip: the file ends within"},
      {gzipped(good.substr(0, 17)), "end 1 bytes too early"},
      {gzipped(good + "x"), "more data"},
      {gzipped(good) + "trailing", "gzip: "},
      {flipped, "gzip: incorrect data check"},
      {"\x1f\x8b", "gzip: "},
  };
  const TempFolder folder;
  const std::string path = folder / "damaged.idx";
  for (const auto& [bytes, reason] : cases) {
    SCOPED_TRACE(reason);
    write_bytes(path, bytes);
    const std::string message = message_of<Error>([&] { load_idx(path); });
    EXPECT_HOLDS(message, reason);
    EXPECT_HOLDS(message, "damaged at byte");
    EXPECT_HOLDS(message, "damaged.idx");
  }
}

}  // namespace
}  // namespace lockstep
