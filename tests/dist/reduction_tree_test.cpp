#include "lockstep/dist/reduction_tree.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::dist {
namespace {

std::string in_brackets(const std::string& a, const std::string& b) {
  std::string text(1, '(');
  text.append(a).append(1, '+').append(b).append(1, ')');
  return text;
}

std::string written_out(int n) {
  std::vector<std::string> value;
  for (int r = 0; r < n; ++r) value.push_back(std::to_string(r));
  for (const TreeStep& step : reduction_tree(n))
    value[step.into] = in_brackets(value[step.into], value[step.from]);
  return value[0];
}

// The recursive definition.
std::string defined(int lo, int hi) {
  if (hi - lo == 1) return std::to_string(lo);
  int half = 1;
  while (half * 2 < hi - lo) half *= 2;
  return in_brackets(defined(lo, lo + half), defined(lo + half, hi));
}

TEST(ReductionTree, IsAsWrittenForSmallWorlds) {
  EXPECT_EQ(written_out(1), "0");
  EXPECT_EQ(written_out(2), "(0+1)");
  EXPECT_EQ(written_out(3), "((0+1)+2)");
  EXPECT_EQ(written_out(4), "((0+1)+(2+3))");
  EXPECT_EQ(written_out(5), "(((0+1)+(2+3))+4)");
  EXPECT_EQ(written_out(6), "(((0+1)+(2+3))+(4+5))");
  EXPECT_EQ(written_out(7), "(((0+1)+(2+3))+((4+5)+6))");
}

TEST(ReductionTree, IsTheRecursiveDefinitionForAnyWorld) {
  for (int n = 1; n <= 70; ++n) {
    EXPECT_EQ(written_out(n), defined(0, n)) << n << " ranks";
    EXPECT_EQ(reduction_tree(n).size(), static_cast<std::size_t>(n - 1));
  }
}

}  // namespace
}  // namespace lockstep::dist
