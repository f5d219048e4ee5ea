#include "lockstep/dist/bootstrap.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "lockstep/core/check.h"
#include "lockstep/dist/local_store.h"
#include "lockstep/dist/prefix_store.h"
#include "lockstep/dist/tcp_store.h"

namespace lockstep::dist {
namespace {

// Rank 0 may be the first to leave a last agreement; the others still read its outcome.
constexpr Duration kLinger = std::chrono::seconds(3);

constexpr const char* kJoined = "joined";  // "ok" or why the job can't start

std::string rank_key(int rank) { return fmt::format("rank/{}", rank); }

std::string describe_process() {
  char host[HOST_NAME_MAX + 1] = "unknown";
  ::gethostname(host, sizeof host - 1);
  return fmt::format("process {} on {}", ::getpid(), host);
}

std::vector<int> missing_ranks(Store& store, int world_size) {
  std::vector<int> missing;
  for (int rank = 0; rank < world_size; ++rank) {
    if (!store.check(rank_key(rank))) missing.push_back(rank);
  }
  return missing;
}

}  // namespace

void join_world(Store& store, int rank, int world_size, const std::string& who, Duration timeout) {
  LOCKSTEP_CHECK(world_size > 0 && rank >= 0 && rank < world_size,
                 "join: rank {} is outside a world of {}", rank, world_size);
  const std::string world = std::to_string(world_size);
  const std::string agreed = store.compare_set("world", "", world);
  if (agreed != world) {
    store.compare_set(
        kJoined, "",
        fmt::format("rank {} ({}) says world size {}, others say {}", rank, who, world, agreed));
  } else if (store.add(fmt::format("claims/{}", rank), 1) > 1) {
    const std::string owner = store.get(rank_key(rank), timeout);
    const std::string why = fmt::format("rank {} claimed twice: by {} and by {}", rank, owner, who);
    store.compare_set(kJoined, "", why);
    throw Error(why);  // also when the world was complete and went on without this process
  } else {
    store.set(rank_key(rank), who);
    if (store.add("arrived", 1) == world_size) store.compare_set(kJoined, "", "ok");
  }
  try {
    const std::string verdict = store.get(kJoined, timeout);
    LOCKSTEP_CHECK(verdict == "ok", "{}", verdict);
  } catch (const TimeoutError&) {
    throw TimeoutError(fmt::format("rank {}: ranks {} of {} did not join within {} ms", rank,
                                   missing_ranks(store, world_size), world_size, timeout.count()));
  }
  LOCKSTEP_CHECK(agreed == world, "join: this process says world size {}, others say {}", world,
                 agreed);
}

namespace {

// Rank 0's port is taken: by a process that also thinks it is rank 0, or by a stranger?
[[noreturn]] void explain_taken_port(const TcpStoreOptions& options, const Environment& environment,
                                     const std::string& prefix, const std::string& what) {
  std::shared_ptr<Store> store;
  try {
    TcpStoreOptions client = options;
    client.serve = false;
    client.timeout = std::chrono::milliseconds(1000);
    store = std::make_shared<TcpStore>(client);
  } catch (const Error& e) {
    throw Error(fmt::format("rank 0 can't serve the store: {} ({}); choose another MASTER_PORT",
                            what, e.what()));
  }
  PrefixStore job(prefix, store);
  join_world(job, 0, environment.world_size, describe_process(), std::chrono::milliseconds(1000));
  throw Error(fmt::format("rank 0 can't serve the store: {}", what));
}

}  // namespace

std::shared_ptr<Store> open_store(const Environment& environment, Duration timeout) {
  const std::string prefix = fmt::format("attempt{}", environment.restart_count);
  if (environment.world_size == 1 && !environment.store_hosted) {
    return std::make_shared<LocalStore>();
  }
  const TimePoint deadline = deadline_after(timeout);
  TcpStoreOptions options;
  options.host = environment.master_addr;
  options.port = environment.master_port;
  options.port_span = environment.port_span;
  // A launcher serves before the job has its name, on a port that is surely its own.
  options.token = environment.store_hosted ? "" : environment.job_id;
  options.interface = environment.interface;
  options.timeout = timeout;
  options.linger = kLinger;
  options.serve = environment.rank == 0 && !environment.store_hosted;
  LOCKSTEP_CHECK(options.port > 0,
                 "a world of {} needs MASTER_PORT, or a launcher that names the job",
                 environment.world_size);
  std::shared_ptr<TcpStore> store;
  try {
    store = std::make_shared<TcpStore>(options);
  } catch (const PortInUseError& e) {
    explain_taken_port(options, environment, prefix, e.what());
  }
  auto job = std::make_shared<PrefixStore>(prefix, store);
  const auto left = std::chrono::ceil<Duration>(deadline - std::chrono::steady_clock::now());
  join_world(*job, environment.rank, environment.world_size, describe_process(),
             std::max(left, Duration(1)));
  return job;
}

}  // namespace lockstep::dist
