// Runs a function in several processes of its own. The calling program must not have used CUDA, as
// a process that did cannot be forked.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <vector>

namespace vgpu_tests {

// A pair of sockets between two processes.
class Channel {
 public:
  explicit Channel(int file) : file_(file) {}
  template <class T>
  void send(const T& value) const {
    EXPECT_EQ(::send(file_, &value, sizeof(value), MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof(value)));
  }
  template <class T>
  T receive() const {
    T value{};
    EXPECT_EQ(::recv(file_, &value, sizeof(value), MSG_WAITALL),
              static_cast<ssize_t>(sizeof(value)));
    return value;
  }

 private:
  int file_;
};

// Exit statuses; 0 where no expectation failed. A process that takes longer than 60 s is ended.
inline std::vector<int> in_processes(int n, const std::function<void(int rank)>& body) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < n; ++rank) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      try {
        body(rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
      std::fflush(stdout);
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  std::vector<int> statuses;
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    statuses.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return statuses;
}

inline void in_two_processes(const std::function<void(const Channel&)>& first,
                             const std::function<void(const Channel&)>& second) {
  std::array<int, 2> files{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, files.data()), 0);
  const auto statuses = in_processes(2, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    close(files[1 - r]);
    (rank == 0 ? first : second)(Channel(files[r]));
  });
  close(files[0]);
  close(files[1]);
  EXPECT_EQ(statuses, (std::vector<int>{0, 0}));
}

}  // namespace vgpu_tests
