// all_reduce_perf: how fast an all-reduce on this host is. Starts its own ranks unless a launcher
// (lockstep-run, torchrun, mpirun, Slurm) has.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/perf_measure.h"
#include "bench/perf_options.h"
#include "lockstep/core/error.h"
#include "lockstep/dist/bootstrap.h"
#include "lockstep/dist/environment.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/dist/tcp_store.h"

namespace {

using namespace lockstep;
using namespace lockstep::bench;

SharedArena make_arena(const PerfOptions& options) {
  const std::size_t bytes = 2 * static_cast<std::size_t>(options.end) + 8192;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return {};
  return {data, bytes / 8192 * 8192};
}

// The verdict is everyone's: each rank knows all ranks' wrong elements.
int run_rank(dist::ProcessGroup& group, const PerfOptions& options, SharedArena arena) {
  const bool speaks = group.rank() == 0 && options.json != "-";
  const PerfRun run = measure(group, options, arena, [&](const std::string& text) {
    if (!speaks) return;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  });
  if (group.rank() == 0 && !options.json.empty()) {
    const std::string text = to_json(run);
    std::FILE* file = options.json == "-" ? stdout : std::fopen(options.json.c_str(), "w");
    const bool written =
        file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (!written || (file != stdout && std::fclose(file) != 0) || std::fflush(stdout) != 0)
      throw Error("cannot write " + options.json);
  }
  return failed_ranks(run).empty() ? 0 : 1;
}

int run_process(std::shared_ptr<dist::Store> store, int rank, int ranks, const PerfOptions& options,
                SharedArena arena) {
  if (options.pin) pin_to_core(rank, ranks);
  auto group = dist::make_process_group("shm", store, rank, ranks);
  const int rc = run_rank(*group, options, arena);
  // Whoever serves the store leaves last.
  group->barrier()->wait();
  return rc;
}

int run_threads(const PerfOptions& options) {
  const SharedArena arena = make_arena(options);
  std::atomic<int> rc{0};
  dist::run_local_ranks(options.local, [&](dist::ProcessGroup& group) {
    if (options.pin) pin_to_core(group.rank(), group.size());
    if (run_rank(group, options, arena) != 0) rc = 1;
  });
  return rc;
}

int guarded(int rank, const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "all_reduce_perf: rank %d: %s\n", rank, error.what());
    return 2;
  }
}

// Our own ranks: they learn through a pipe where the parent's store is.
int run_forked(const PerfOptions& options) {
  const SharedArena arena = make_arena(options);
  int ports[2];
  if (pipe(ports) != 0) throw Error("cannot make a pipe");
  std::vector<pid_t> children;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      const int rc = guarded(rank, [&] {
        dist::TcpStoreOptions where;
        if (read(ports[0], &where.port, sizeof(where.port)) != sizeof(where.port))
          throw Error("the parent has gone");
        auto store = std::make_shared<dist::TcpStore>(where);
        return run_process(store, rank, options.ranks, options, arena);
      });
      std::fflush(stdout);
      _exit(rc);
    }
    if (pid < 0) throw Error("cannot start rank " + std::to_string(rank));
    children.push_back(pid);
  }
  dist::TcpStoreOptions serve;
  serve.serve = true;
  const dist::TcpStore store(serve);
  for (int rank = 0; rank < options.ranks; ++rank) {
    const int port = store.port();
    if (write(ports[1], &port, sizeof(port)) != sizeof(port)) throw Error("cannot write to a pipe");
  }
  int rc = 0;
  for (const pid_t child : children) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    rc = std::max(rc, WIFEXITED(status) ? WEXITSTATUS(status) : 2);
  }
  return rc;
}

}  // namespace

int main(int argc, char** argv) {
  return guarded(0, [&] {
    std::string help;
    const PerfOptions options = parse_perf_options(argc, argv, help);
    if (!help.empty()) {
      std::fputs(help.c_str(), stdout);
      return 0;
    }
    if (options.local > 0) return run_threads(options);
    const dist::Environment environment = dist::read_environment();
    if (environment.launched)
      return run_process(dist::open_store(environment), environment.rank, environment.world_size,
                         options, {});
    return run_forked(options);
  });
}
