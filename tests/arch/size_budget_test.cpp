// How large the library may get. (Hundreds of megabytes for users of the CPU alone:
// pytorch/pytorch#34058.)
#include <gtest/gtest.h>

#include <filesystem>

#include "arch/source_tree.h"

namespace lockstep::testing {
namespace {

constexpr std::uintmax_t kMegabyte = 1000 * 1000;

// Bytes of a copy of the file without symbols and debugging information.
std::uintmax_t stripped_size(const std::filesystem::path& file, const ScratchFolder& scratch) {
  const auto copy = scratch.path() / "stripped";
  const CommandResult strip =
      run_command("strip -o " + shell_quoted(copy.string()) + " -- " + shell_quoted(file.string()));
  EXPECT_EQ(strip.status, 0) << strip.output;
  return strip.status == 0 ? std::filesystem::file_size(copy) : 0;
}

TEST(SizeBudget, SharedLibrary) {
  if (LOCKSTEP_INSTRUMENTED) GTEST_SKIP() << "sanitizers inflate the code";
  const std::string archive = LOCKSTEP_ARCHIVE;
  const ScratchFolder scratch;
  std::filesystem::path library = archive;
  if (library.extension() == ".a") {
    library = scratch.path() / "liblockstep.so";
    const CommandResult link =
        run_command(shell_quoted(LOCKSTEP_CXX) + " -shared -o " + shell_quoted(library.string()) +
                    " -Wl,--whole-archive " + shell_quoted(archive) + " -Wl,--no-whole-archive");
    ASSERT_EQ(link.status, 0) << link.output;
  }
  const std::uintmax_t bytes = stripped_size(library, scratch);
  RecordProperty("bytes", std::to_string(bytes));
  EXPECT_GT(bytes, 100 * 1000u);
  EXPECT_LT(bytes, 20 * kMegabyte);
}

TEST(SizeBudget, Trainer) {
  if (LOCKSTEP_INSTRUMENTED) GTEST_SKIP() << "sanitizers inflate the code";
  const std::filesystem::path trainer = LOCKSTEP_BINARY_DIR "/bin/lockstep-train";
  if (!std::filesystem::exists(trainer)) GTEST_SKIP() << "lockstep-train is not built";
  const ScratchFolder scratch;
  const std::uintmax_t bytes = stripped_size(trainer, scratch);
  RecordProperty("bytes", std::to_string(bytes));
  EXPECT_LT(bytes, 10 * kMegabyte);
}

}  // namespace
}  // namespace lockstep::testing
