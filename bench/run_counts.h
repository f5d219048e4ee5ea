// What a training run's counts mean: steps, samples, and results that are independent of each
// other. Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <vector>

namespace lockstep::bench {

// A sample that is seen in three epochs counts three times.
struct RunCounts {
  std::int64_t steps_per_epoch = 0;
  std::int64_t last_batch = 0;  // samples in the last step of an epoch
  std::int64_t samples_seen = 0;
  bool drop_last = false;
};
inline RunCounts count_run(std::int64_t samples, std::int64_t batch, std::int64_t epochs,
                           bool drop_last) {
  if (samples < 0 || batch < 1 || epochs < 0)
    throw std::invalid_argument("a run needs samples >= 0, batch >= 1, epochs >= 0");
  RunCounts c;
  c.drop_last = drop_last;
  const std::int64_t whole = samples / batch, rest = samples % batch;
  const bool partial = rest > 0 && !drop_last;
  c.steps_per_epoch = whole + (partial ? 1 : 0);
  c.last_batch = partial ? rest : whole > 0 ? batch : 0;
  c.samples_seen = epochs * (whole * batch + (partial ? rest : 0));
  return c;
}

// Runs with one seed are one result, however often they were made.
struct SeedCount {
  int independent = 0;
  std::vector<std::uint64_t> duplicated;   // seeds that came again, ascending
  std::vector<std::size_t> first_of_each;  // positions of the results that count
};
inline SeedCount count_seeds(const std::vector<std::uint64_t>& seeds) {
  SeedCount c;
  std::set<std::uint64_t> seen, again;
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    if (seen.insert(seeds[i]).second)
      c.first_of_each.push_back(i);
    else
      again.insert(seeds[i]);
  }
  c.independent = static_cast<int>(seen.size());
  c.duplicated.assign(again.begin(), again.end());
  return c;
}

}  // namespace lockstep::bench
