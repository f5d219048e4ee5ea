#include "lockstep/dist/launch/launcher.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <random>

#include "lockstep/core/check.h"
#include "lockstep/dist/launch/leftovers.h"
#include "lockstep/dist/launch/node_agreement.h"
#include "lockstep/dist/launch/worker_set.h"
#include "lockstep/dist/tcp_store.h"

namespace lockstep::dist {
namespace {

using std::chrono::steady_clock;

std::string random_name() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

bool asks_to_stop(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

class Job {
 public:
  Job(const LaunchOptions& options, int signals, const Announce& announce)
      : options_(options), signals_(signals), announce_(announce) {}

  LaunchResult run() {
    facts_.launch_id = random_name();
    open_store();
    NodeAgreement nodes(store_, options_.nnodes, options_.node_rank, options_.join_timeout);
    facts_.job_id = nodes.agree_job_id(facts_.launch_id);
    choose_log_dir();
    announce_start();
    LaunchResult result;
    try {
      for (int round = 0;; ++round) {
        facts_.restart_count = result.restarts = round;
        nodes.begin(round, options_.nproc_per_node, options_.max_restarts);
        const std::optional<RoundFailure> failure = run_round(nodes, round);
        clean_up();
        if (!failure) break;
        result.exit_code = failure->exit_code;
        result.root_cause = failure->cause;
        if (!failure->may_restart || round == options_.max_restarts) break;
        announce_(fmt::format("restart {} of {}", round + 1, options_.max_restarts));
        result.exit_code = 0;
        result.root_cause.clear();
      }
    } catch (...) {
      clean_up();
      throw;
    }
    nodes.leave(std::chrono::seconds(10));
    return result;
  }

 private:
  void open_store() {
    TcpStoreOptions store;
    store.host = options_.master_addr;
    store.port = options_.master_port;
    store.serve = options_.node_rank == 0;
    store.timeout = options_.join_timeout;
    store_ = std::make_shared<TcpStore>(store);
    facts_.master_port = store_->port();
  }

  void choose_log_dir() {
    if (!options_.tee.any() && !options_.redirects.any()) return;
    const std::string base =
        options_.log_dir.empty() ? fmt::format("/tmp/lockstep-{}", ::getuid()) : options_.log_dir;
    log_dir_ = fmt::format("{}/{}_{}", base, options_.run_id, facts_.launch_id);
    announce_("logs in " + log_dir_);
  }

  void announce_start() const {
    const int world = options_.nnodes * options_.nproc_per_node;
    std::string line = fmt::format(
        "{} {} on {} {}, store at {}:{}", world, world == 1 ? "rank" : "ranks", options_.nnodes,
        options_.nnodes == 1 ? "node" : "nodes", options_.master_addr, facts_.master_port);
    if (options_.omp_threads > 0) {
      line += fmt::format(", OMP_NUM_THREADS={}", options_.omp_threads);
    }
    announce_(line);
  }

  // Nothing if all workers of all nodes came through.
  std::optional<RoundFailure> run_round(NodeAgreement& nodes, int round) {
    const TimePoint start = steady_clock::now();
    std::optional<RoundFailure> failure;
    const auto fail = [&](const RoundFailure& mine, int signal, Duration grace) {
      if (!failure) failure = nodes.report(round, mine);
      workers_->begin_end(signal, grace);
    };
    try {
      workers_ = std::make_unique<WorkerSet>(options_, facts_, log_dir_);
    } catch (const Error& e) {
      nodes.report(round, {127, false, e.what()});
      throw;
    }
    bool succeeded = false;
    TimePoint next_question = start;
    while (true) {
      workers_->wait(signals_, options_.monitor_interval);
      for (const int signal : arrived_signals()) {
        if (!asks_to_stop(signal)) {
          workers_->forward(signal);
        } else if (stopped_) {
          workers_->kill_now();
        } else {
          stopped_ = true;
          announce_(fmt::format("got {}, stopping all ranks; once more kills them",
                                ExitStatus{0, signal}.str()));
          fail({128 + signal, false, "stopped by " + ExitStatus{0, signal}.str()}, signal,
               options_.stop_grace);
        }
      }
      for (const WorkerFailure& f : workers_->sweep()) {
        if (failure) continue;  // the others of a failed job fall as its consequence
        const std::string cause = fmt::format("rank {} {}", f.rank, f.status.str());
        announce_(fmt::format("root cause: {} (pid {}, after {:.1f} s); ending all other ranks",
                              cause, f.pid,
                              std::chrono::duration<double>(steady_clock::now() - start).count()));
        fail({f.status.shell_code(), true, cause}, SIGTERM, options_.failure_grace);
      }
      if (steady_clock::now() >= next_question) {
        next_question = deadline_after(options_.monitor_interval);
        nodes.show_life();
        if (const auto elsewhere = failure ? std::nullopt : nodes.failure(round)) {
          announce_("another node failed: " + elsewhere->cause);
          failure = elsewhere;
          workers_->begin_end(SIGTERM, options_.failure_grace);
        }
      }
      workers_->keep_time();
      if (workers_->any_running()) continue;
      if (failure) return failure;
      if (!succeeded) nodes.succeed(round);
      succeeded = true;
      if (nodes.all_succeeded(round)) return std::nullopt;
    }
  }

  std::vector<int> arrived_signals() const {
    std::vector<int> found;
    if (signals_ < 0 || !poll_until(signals_, POLLIN, steady_clock::now())) return found;
    std::array<unsigned char, 64> bytes;
    const ssize_t n = ::read(signals_, bytes.data(), bytes.size());
    if (n > 0) found.assign(bytes.begin(), bytes.begin() + n);
    return found;
  }

  void clean_up() {
    if (workers_) workers_->kill_now();
    const int killed = end_leftover_processes(
        fmt::format("{}={}", kLaunchTag, facts_.launch_id), options_.adopts_orphans,
        std::chrono::milliseconds(300), std::chrono::seconds(5));
    if (killed > 0) announce_(fmt::format("ended {} processes that workers had left", killed));
    if (workers_) workers_->finish_output(std::chrono::seconds(1));
    workers_.reset();
    remove_shared_memory(facts_.job_id);
  }

  const LaunchOptions& options_;
  const int signals_;
  const Announce& announce_;
  std::shared_ptr<TcpStore> store_;
  RoundFacts facts_;
  std::string log_dir_;
  std::unique_ptr<WorkerSet> workers_;
  bool stopped_ = false;
};

}  // namespace

LaunchResult launch(const LaunchOptions& options, int signals, const Announce& announce) {
  validate(options);
  return Job(options, signals, announce).run();
}

}  // namespace lockstep::dist
