// The order in which a reduction adds up the ranks: one balanced binary tree, whatever the
// transport. A pure function of the number of ranks.
//
//   tree(0, n) = tree(0, h) + tree(h, n),  h = the largest power of two below n
//
//   2: g0+g1            3: (g0+g1)+g2                  4: (g0+g1)+(g2+g3)
//   5: ((g0+g1)+(g2+g3))+g4                            6: ((g0+g1)+(g2+g3))+(g4+g5)
//   7: ((g0+g1)+(g2+g3))+((g4+g5)+g6)                  8: the full tree
//
// It is what recursive halving-doubling from distance 1 computes, with absent partners skipped: a
// rank r joins r + 2^k at level k. So k ranks of V/k logical ranks each give the bits of V ranks.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::dist {

// One addition: value[into] += value[from], where value[r] starts as rank r's input.
struct TreeStep {
  int into;
  int from;

  bool operator==(const TreeStep&) const = default;
};

// The n-1 additions, each after those that it needs; the result is value[0].
inline std::vector<TreeStep> reduction_tree(int n) {
  std::vector<TreeStep> steps;
  for (int distance = 1; distance < n; distance *= 2)
    for (int r = 0; r + distance < n; r += 2 * distance) steps.push_back({r, r + distance});
  return steps;
}

}  // namespace lockstep::dist
