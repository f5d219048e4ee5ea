#include "lockstep/dist/launch/launch_options.h"

#include <sched.h>

#include <algorithm>
#include <charconv>

#include "lockstep/core/check.h"

namespace lockstep::dist {
namespace {

constexpr const char* kIdLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

}  // namespace

int allowed_cores() {
  // The kernel refuses a mask that is shorter than its own.
  for (int cores = 1024; cores <= (1 << 20); cores *= 2) {
    cpu_set_t* mask = CPU_ALLOC(cores);
    if (mask == nullptr) break;
    const std::size_t size = CPU_ALLOC_SIZE(cores);
    const bool known = ::sched_getaffinity(0, size, mask) == 0;
    const int count = known ? CPU_COUNT_S(size, mask) : 0;
    CPU_FREE(mask);
    if (known) return std::max(count, 1);
  }
  return 1;
}

int resolve_nproc(const std::string& text, int allowed) {
  if (text == "auto" || text == "cpu") return allowed;
  LOCKSTEP_CHECK(text != "gpu" && text != "xpu",
                 "--nproc-per-node {}: this build has no such devices; give a number or 'cpu'",
                 text);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  LOCKSTEP_CHECK(error == std::errc() && end == text.data() + text.size() && value > 0,
                 "--nproc-per-node '{}': wants a whole number from 1, 'auto' or 'cpu'", text);
  return value;
}

void validate(const LaunchOptions& o) {
  LOCKSTEP_CHECK(!o.command.empty(), "no program to run was given");
  LOCKSTEP_CHECK(o.nproc_per_node >= 1, "--nproc-per-node {}: wants 1 or more", o.nproc_per_node);
  // All are started before signals are looked at; a slip of the finger must not fill the machine.
  constexpr int kMostProcesses = 512;
  LOCKSTEP_CHECK(o.nproc_per_node <= kMostProcesses, "--nproc-per-node {}: wants {} at most",
                 o.nproc_per_node, kMostProcesses);
  LOCKSTEP_CHECK(o.nnodes >= 1, "--nnodes {}: wants 1 or more", o.nnodes);
  LOCKSTEP_CHECK(o.node_rank >= 0 && o.node_rank < o.nnodes,
                 "--node-rank {} is outside --nnodes {}", o.node_rank, o.nnodes);
  LOCKSTEP_CHECK(o.master_port >= 0 && o.master_port <= 65535,
                 "--master-port {} is not in 1..65535", o.master_port);
  LOCKSTEP_CHECK(o.nnodes == 1 || o.master_port > 0,
                 "--nnodes {}: every node must be told the same --master-port", o.nnodes);
  LOCKSTEP_CHECK(o.max_restarts >= 0, "--max-restarts {}: wants 0 or more", o.max_restarts);
  LOCKSTEP_CHECK(o.monitor_interval.count() > 0, "--monitor-interval: wants more than 0 s");
  // It names folders and shared memory.
  LOCKSTEP_CHECK(!o.run_id.empty() && o.run_id[0] != '.' &&
                     o.run_id.find_first_not_of(kIdLetters) == std::string::npos,
                 "--rdzv-id '{}': wants letters, digits, '.', '_' and '-', no '.' in front",
                 o.run_id);
  for (const auto& [flag, rank] :
       {std::pair("--redirects", o.redirects.max_rank()), std::pair("--tee", o.tee.max_rank())}) {
    LOCKSTEP_CHECK(rank < o.nproc_per_node, "{} names local rank {}, there are {}", flag, rank,
                   o.nproc_per_node);
  }
  for (const int rank : o.local_ranks_filter) {
    LOCKSTEP_CHECK(rank >= 0 && rank < o.nproc_per_node,
                   "--local-ranks-filter names local rank {}, there are {}", rank,
                   o.nproc_per_node);
  }
}

}  // namespace lockstep::dist
