// Thousands of damaged files for every reader: each is read or is an Error, takes no more memory
// than its size warrants, and (under the sanitizers) touches no byte out of bounds.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "lockstep/core/allocator.h"
#include "lockstep/core/error.h"
#include "lockstep/core/half.h"
#include "lockstep/core/idx.h"
#include "lockstep/core/npy.h"
#include "lockstep/core/safetensors.h"
#include "support/gzip.h"
#include "support/temp_folder.h"

namespace lockstep {
namespace {

using testing::TempFolder;

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::string mutate(std::string bytes) {
    const int changes = 1 + static_cast<int>(random_() % 4);
    for (int i = 0; i < changes; ++i) change(bytes);
    return bytes;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

  // Half of all changes fall on the first bytes, where the headers' numbers are.
  std::size_t place(const std::string& bytes) {
    return random_() % 2 ? below(bytes.size()) : below(std::min<std::size_t>(bytes.size(), 24));
  }

  void change(std::string& bytes) {
    constexpr unsigned char kTelling[] = {0,   1,   0x7f, 0x80, 0xff, '0', '9', '"', '\'', '{',
                                          '}', '[', ']',  '(',  ')',  ',', ':', '-', ' ',  '\\'};
    if (bytes.empty()) {
      bytes.push_back(static_cast<char>(random_()));
      return;
    }
    const std::size_t at = place(bytes);
    switch (random_() % 7) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << random_() % 8);
        break;
      case 1:
        bytes[at] = static_cast<char>(kTelling[random_() % sizeof kTelling]);
        break;
      case 2:
        bytes.resize(below(bytes.size()));
        break;
      case 3:
        bytes.insert(at, 1 + below(8), static_cast<char>(kTelling[random_() % sizeof kTelling]));
        break;
      case 4:
        bytes.erase(at, 1 + below(8));
        break;
      case 5: {  // a piece twice
        const std::string piece = bytes.substr(at, 1 + below(40));
        bytes.insert(below(bytes.size()), piece);
        break;
      }
      default: {  // another digit, so that numbers stay numbers
        const std::size_t digit = bytes.find_first_of("0123456789", at);
        if (digit != std::string::npos) bytes[digit] = static_cast<char>('0' + random_() % 10);
        break;
      }
    }
  }

  std::mt19937 random_;
};

// Reads `count` mutations of `valid` and says how many were still accepted.
int fuzz(const std::string& valid, int count, unsigned seed, std::uint64_t most_per_byte,
         const std::function<void(const std::string&)>& load) {
  const TempFolder folder = TempFolder::in_memory();
  const std::string path = folder / "x";
  testing::write_bytes(path, valid);
  load(path);
  Mutator mutator(seed);
  int accepted = 0;
  for (int i = 0; i < count; ++i) {
    const std::string bytes = mutator.mutate(valid);
    testing::write_bytes(path, bytes);
    CpuAllocator::instance().reset_peak();
    const std::uint64_t before = CpuAllocator::instance().stats().live;
    try {
      load(path);
      ++accepted;
    } catch (const Error&) {
    }  // anything else ends the test
    const std::uint64_t taken = CpuAllocator::instance().stats().peak_live - before;
    EXPECT_LE(taken, (bytes.size() + 4096) * most_per_byte) << "mutation " << i;
  }
  EXPECT_LT(accepted, count) << "no mutation did any harm";
  return accepted;
}

TEST(FileFuzz, Safetensors) {
  const TempFolder folder;
  save_safetensors(folder / "x",
                   {{"weight", zeros({4, 5})},
                    {"half", zeros({3}, {.dtype = kF16})},
                    {"flag", tensor<bool>({true, false, true})},
                    {"none", zeros({0, 2})},
                    {"step", tensor<std::int64_t>({7}, {})}},
                   {{"epoch", "3"}});
  const int accepted = fuzz(testing::read_bytes(folder / "x"), 4000, 1, 2,
                            [](const std::string& path) { load_safetensors_with_metadata(path); });
  EXPECT_GT(accepted, 0) << "changes of values alone must be accepted";
}

TEST(FileFuzz, Npy) {
  const TempFolder folder;
  save_npy(folder / "x", zeros({4, 5}));
  const int accepted = fuzz(testing::read_bytes(folder / "x"), 4000, 2, 4,
                            [](const std::string& path) { load_npy(path); });
  EXPECT_GT(accepted, 0);
}

TEST(FileFuzz, IdxRaw) {
  std::string bytes("\0\0\x0c\2\0\0\0\4\0\0\0\5", 12);
  bytes.append(80, '\1');
  const int accepted = fuzz(bytes, 4000, 3, 2, [](const std::string& path) { load_idx(path); });
  EXPECT_GT(accepted, 0);
}

TEST(FileFuzz, IdxGzip) {
  std::string bytes("\0\0\x08\2\0\0\0\x40\0\0\0\x40", 12);
  for (int i = 0; i < 4096; ++i) bytes.push_back(static_cast<char>(i * i >> 5));
  // Deflate packs at most 1032 bytes into one.
  fuzz(testing::gzipped(bytes), 4000, 4, 1100, [](const std::string& path) { load_idx(path); });
}

}  // namespace
}  // namespace lockstep
