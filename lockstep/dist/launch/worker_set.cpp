#include "lockstep/dist/launch/worker_set.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <memory>

#include "lockstep/core/check.h"
#include "lockstep/dist/environment.h"
#include "lockstep/dist/socket_address.h"

namespace lockstep::dist {
namespace {

FileDescriptor create_file(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  LOCKSTEP_CHECK(fd, "can't create the log file {}: {}", path.string(), error_text(errno));
  return fd;
}

}  // namespace

WorkerSet::WorkerSet(const LaunchOptions& options, const RoundFacts& facts,
                     const std::string& log_dir)
    : first_rank_(options.node_rank * options.nproc_per_node) {
  const bool pumped = options.tee.any() || !options.local_ranks_filter.empty();
  if (pumped) pump_ = std::make_unique<OutputPump>();
  workers_.reserve(static_cast<std::size_t>(options.nproc_per_node));
  for (int local_rank = 0; local_rank < options.nproc_per_node; ++local_rank) {
    workers_.push_back(start(options, facts, log_dir, local_rank));
  }
}

ChildProcess WorkerSet::start(const LaunchOptions& options, const RoundFacts& facts,
                              const std::string& log_dir, int local_rank) {
  ChildSpec spec;
  spec.command = options.command;
  spec.environment = worker_environment(environment_block(), options, facts, local_rank);
  const auto& filter = options.local_ranks_filter;
  const bool shown = filter.empty() || std::ranges::find(filter, local_rank) != filter.end();
  const std::filesystem::path folder = std::filesystem::path(log_dir) /
                                       fmt::format("attempt_{}", facts.restart_count) /
                                       std::to_string(local_rank);
  const std::string prefix = fmt::format("[{}{}]:", options.role, first_rank_ + local_rank);
  FileDescriptor ours[2];  // closed here once the worker has its copies
  const auto route = [&](Streams stream, int inherited, const char* name) {
    FileDescriptor& mine = ours[inherited - 1];
    const bool tee = includes(options.tee.of(local_rank), stream);
    const bool redirect = includes(options.redirects.of(local_rank), stream);
    if (tee) {
      mine = pump_->add(create_file(folder / name), shown ? inherited : -1, prefix);
    } else if (redirect) {
      mine = create_file(folder / name);
    } else if (!shown) {
      mine.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    }
    return mine ? mine.get() : inherited;
  };
  spec.stdout_fd = route(Streams::kStdout, 1, "stdout.log");
  spec.stderr_fd = route(Streams::kStderr, 2, "stderr.log");
  return ChildProcess::start(spec);
}

bool WorkerSet::any_running() const {
  return std::ranges::any_of(workers_, [](const ChildProcess& w) { return w.running(); });
}

std::vector<WorkerFailure> WorkerSet::sweep() {
  std::vector<WorkerFailure> found;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (!workers_[i].running()) continue;
    const std::optional<ExitStatus> status = workers_[i].poll();
    if (status && !status->success()) {
      found.push_back({first_rank_ + static_cast<int>(i), workers_[i].pid(), *status});
    }
  }
  std::ranges::stable_partition(found, [](const WorkerFailure& f) { return f.status.signal != 0; });
  return found;
}

void WorkerSet::begin_end(int signal, Duration grace) {
  forward(signal);
  forward(SIGCONT);
  const TimePoint at = deadline_after(grace);
  kill_at_ = kill_at_ ? std::min(*kill_at_, at) : at;
}

void WorkerSet::kill_now() {
  kill_at_ = std::chrono::steady_clock::now();
  forward(SIGKILL);
}

void WorkerSet::keep_time() {
  if (kill_at_ && std::chrono::steady_clock::now() >= *kill_at_) forward(SIGKILL);
}

void WorkerSet::forward(int signal) {
  for (const ChildProcess& worker : workers_) worker.signal_group(signal);
}

void WorkerSet::wait(int fd, Duration timeout) const {
  std::vector<pollfd> polled = {{fd, POLLIN, 0}};
  for (const ChildProcess& worker : workers_) {
    if (worker.running()) polled.push_back({worker.wake_fd(), POLLIN, 0});
  }
  const int ms = static_cast<int>(std::clamp<Duration::rep>(timeout.count(), 0, INT_MAX));
  // Woken early by a signal, it is the caller's loop that looks again.
  ::poll(polled.data(), polled.size(), ms);
}

void WorkerSet::finish_output(Duration patience) {
  if (pump_) pump_->finish(deadline_after(patience));
  pump_.reset();
}

}  // namespace lockstep::dist
