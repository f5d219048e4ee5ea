// A worker for the launcher's tests: joins the job's store and then does what the first argument
// says.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "lockstep/core/error.h"
#include "lockstep/dist/bootstrap.h"

namespace {

using namespace lockstep::dist;
using std::chrono::milliseconds;

// All ranks are here; afterwards nobody needs the store.
void meet(Store& store, const std::string& name, int world) {
  store.add(name, 1);
  while (store.add(name, 0) < world) std::this_thread::sleep_for(milliseconds(1));
}

void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}

int run(const std::string& mode, const std::string& argument) {
  const Environment env = read_environment();
  auto store = open_store(env, std::chrono::seconds(20));
  meet(*store, "start", env.world_size);
  if (mode == "meet") {
    // Leaves one line per rank in the folder, for the test to read.
    if (!argument.empty()) {
      std::ofstream(argument + "/" + std::to_string(env.rank))
          << env.rank << ' ' << env.world_size << ' ' << env.local_rank << ' '
          << env.local_world_size << ' ' << env.group_rank << ' ' << env.restart_count << '\n';
    }
    meet(*store, "end", env.world_size);
  } else if (mode == "rank0-first") {
    if (env.rank != 0) std::this_thread::sleep_for(milliseconds(300));
  } else if (mode == "kill-2") {
    if (env.rank == 2) ::raise(SIGKILL);
    store->get("never", std::chrono::seconds(60));
  } else if (mode == "stop-1") {
    // Rank 1 freezes; rank 0 fails once it has.
    if (env.rank == 1) {
      store->set("pid", std::to_string(::getpid()));
      ::raise(SIGSTOP);
      sleep_for_ever();
    }
    store->get("pid", std::chrono::seconds(20));
    std::this_thread::sleep_for(milliseconds(50));
    if (env.rank == 0) return 7;
    sleep_for_ever();
  } else if (mode == "stubborn") {
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGINT, SIG_IGN);
    meet(*store, "deaf", env.world_size);
    if (env.rank == 0 && argument == "fail") return 5;
    if (env.rank == 0) std::puts("ready");
    std::fflush(stdout);
    sleep_for_ever();
  } else if (mode == "fail-on-node-1") {
    if (env.group_rank == 1) return 9;
    sleep_for_ever();
  } else if (mode == "fail-once") {
    if (env.restart_count == 0 && env.rank == 1) return 3;
    meet(*store, "second", env.world_size);
  } else {
    std::fprintf(stderr, "unknown mode '%s'\n", mode.c_str());
    return 64;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "meet", argc > 2 ? argv[2] : "");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
