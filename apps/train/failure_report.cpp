#include "failure_report.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "lockstep/core/error.h"
#include "stop_signal.h"

namespace lockstep::apps {
namespace {

using std::chrono::milliseconds;

// What the launcher sends when another rank was the first to fail.
bool ended_by_launcher() { return stop_signal() == SIGTERM; }

milliseconds patience(const dist::Environment& environment, const std::exception& failure) {
  if (environment.world_size == 1) return milliseconds(0);
  // Rank by rank, so that of ranks that fail alike the first speaks for all.
  const milliseconds turn(200 * std::min(environment.rank, 5));
  // A rank that lost its peers was not the first, unless they are gone without a launcher's notice.
  const bool lost_peers = dynamic_cast<const CommError*>(&failure) != nullptr &&
                          dynamic_cast<const TimeoutError*>(&failure) == nullptr;
  return lost_peers ? milliseconds(2000) + turn : turn;
}

}  // namespace

void report_failure(const dist::Environment& environment, const std::exception& failure) {
  const milliseconds limit = patience(environment, failure);
  if (limit.count() > 0) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < deadline) {
      if (ended_by_launcher()) return;
      std::this_thread::sleep_for(milliseconds(10));
    }
    if (ended_by_launcher()) return;
  }
  std::string line = failure.what();
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::fprintf(stderr, "lockstep-train: rank %d: %s\n", environment.rank, line.c_str());
}

}  // namespace lockstep::apps
