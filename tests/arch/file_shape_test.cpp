// Short files with names that say what they hold.
#include <gtest/gtest.h>

#include <regex>

#include "arch/source_tree.h"

namespace lockstep::testing {
namespace {

constexpr std::size_t kMostLines = 600;

bool is_forbidden_name(const std::string& stem) {
  static const std::regex kCollector(R"((^|_)(utils?|common|misc|helpers?)(_|$))");
  static const std::regex kVersion(R"((^|_)(v[0-9]+|new|old|final)(_|$))");
  return std::regex_search(stem, kCollector) || std::regex_search(stem, kVersion);
}

TEST(FileShape, NoFileIsTooLongAndNoNameSaysNothing) {
  for (const char* folder : {"lockstep", "apps", "bench", "tests", "scripts", "cmake"})
    for (const SourceFile& file :
         sources_below(folder, {".h", ".cpp", ".cu", ".cuh", ".cmake", ".py", ""})) {
      EXPECT_LE(lines_of(file.text).size(), kMostLines) << file.path;
      const std::string stem = std::filesystem::path(file.path).stem().string();
      EXPECT_FALSE(is_forbidden_name(stem)) << file.path;
    }
}

TEST(FileShape, HeadersAreIncludedOnceAndSayWhatTheyAreFor) {
  for (const char* folder : {"lockstep", "apps", "bench"})
    for (const SourceFile& file : sources_below(folder, {".h"})) {
      EXPECT_EQ(file.text.rfind("// ", 0), 0u) << file.path << " does not begin with a comment";
      EXPECT_NE(file.text.find("\n#pragma once\n"), std::string::npos) << file.path;
    }
}

TEST(FileShape, ForbiddenNames) {
  for (const char* name : {"utils", "string_util", "common", "common_ops", "misc", "test_helper",
                           "kernel_v2", "v3", "sgd_new", "old_reducer"})
    EXPECT_TRUE(is_forbidden_name(name)) << name;
  for (const char* name : {"conv2d", "mt19937", "batch_norm1d", "bfloat16", "communicator",
                           "reduce_avx2", "renewal", "threshold"})
    EXPECT_FALSE(is_forbidden_name(name)) << name;
}

}  // namespace
}  // namespace lockstep::testing
