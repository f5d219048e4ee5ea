// Ranks as processes, for tests of what happens when one is killed, frozen or leaves early.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/dist/tcp_store.h"

namespace lockstep::testing {

struct ProcessResult {
  int status = 0;      // as of waitpid
  std::string text;    // what the body returned, or "error: " and the message
  double seconds = 0;  // from the start of all to this one's end
  bool exited_well() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
};

// Forks a process that serves a store, then one per rank, which runs the body and hands back its
// text. All are gone when this object is: whoever still runs is killed.
class ProcessRanks {
 public:
  using Body = std::function<std::string(int rank, std::shared_ptr<dist::Store> store)>;

  ProcessRanks(int size, const Body& body) {
    int pipe_fds[2];
    make_pipe(pipe_fds);
    server_ = fork();
    if (server_ == 0) serve(pipe_fds[1]);
    close(pipe_fds[1]);
    const int port = std::stoi(read_all(pipe_fds[0], 10));
    for (int rank = 0; rank < size; ++rank) {
      make_pipe(pipe_fds);
      const pid_t pid = fork();
      if (pid == 0) run(rank, port, body, pipe_fds[1]);
      close(pipe_fds[1]);
      pids_.push_back(pid);
      pipes_.push_back(pipe_fds[0]);
    }
  }
  ~ProcessRanks() {
    for (const pid_t pid : pids_)
      if (pid > 0) kill_and_reap(pid);
    kill_and_reap(server_);
    for (const int fd : pipes_) close(fd);
  }
  ProcessRanks(const ProcessRanks&) = delete;
  ProcessRanks& operator=(const ProcessRanks&) = delete;

  pid_t pid(int rank) const { return pids_[static_cast<std::size_t>(rank)]; }

  // Waits for this rank's text or its end, at most `limit` seconds; then kills it.
  ProcessResult finish(int rank, double limit = 20) {
    const auto i = static_cast<std::size_t>(rank);
    ProcessResult result;
    result.text = read_all(pipes_[i], limit);
    result.seconds = elapsed();
    if (result.text.empty()) kill(pids_[i], SIGKILL);
    while (waitpid(pids_[i], &result.status, 0) < 0 && errno == EINTR) {
    }
    pids_[i] = 0;
    return result;
  }

 private:
  static void make_pipe(int* fds) {
    if (pipe(fds) != 0) throw Error("pipe failed");
  }
  static void kill_and_reap(pid_t pid) {
    kill(pid, SIGKILL);
    kill(pid, SIGCONT);
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  // Until the other end closes, a 0 byte comes or time is up.
  static std::string read_all(int fd, double limit) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit);
    std::string text;
    while (std::chrono::steady_clock::now() < end) {
      pollfd poll_fd{fd, POLLIN, 0};
      if (poll(&poll_fd, 1, 50) <= 0) continue;
      char buffer[4096];
      const ssize_t n = read(fd, buffer, sizeof(buffer));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      text.append(buffer, static_cast<std::size_t>(n));
      if (text.back() == 0) {
        text.pop_back();
        break;
      }
    }
    return text;
  }
  static void write_all(int fd, std::string text) {
    text.push_back(0);
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t n = write(fd, text.data() + done, text.size() - done);
      if (n > 0) done += static_cast<std::size_t>(n);
      if (n < 0 && errno != EINTR) break;
    }
  }

  [[noreturn]] static void serve(int fd) {
    dist::TcpStoreOptions options;
    options.serve = true;
    options.token = "process-ranks";
    dist::TcpStore store(options);
    write_all(fd, std::to_string(store.port()));
    while (true) pause();
  }
  [[noreturn]] static void run(int rank, int port, const Body& body, int fd) {
    std::string text;
    try {
      dist::TcpStoreOptions options;
      options.port = port;
      options.token = "process-ranks";
      text = body(rank, std::make_shared<dist::TcpStore>(options));
    } catch (const std::exception& error) {
      text = std::string("error: ") + error.what();
    }
    write_all(fd, text);
    _exit(0);
  }

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  pid_t server_ = 0;
  std::vector<pid_t> pids_;
  std::vector<int> pipes_;
};

}  // namespace lockstep::testing
