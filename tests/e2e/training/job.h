// A job of several processes, of which nothing may be left behind.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <sstream>
#include <string>
#include <vector>

#include "dist/run_program.h"
#include "lockstep/dist/launch/leftovers.h"

namespace lockstep::testing {

using Words = std::vector<std::string>;

inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A started job, marked so that whatever it leaves behind can be found.
class Job {
 public:
  explicit Job(const Words& command, const Words& environment = {})
      : mark_("LOCKSTEP_TEST_JOB=" + std::to_string(::getpid()) + "-" +
              std::to_string(next_number())),
        program_(command, environment + Words{mark_, "OMP_NUM_THREADS=1"}) {}
  ~Job() {
    if (!ended_) program_.send(SIGKILL);
    EXPECT_EQ(
        dist::end_leftover_processes(mark_, false, dist::Duration(2000), dist::Duration(5000)), 0)
        << "processes were left behind";
  }

  // The exit code; also checks that nothing of the job is left.
  int wait(double limit_seconds = 60) {
    const int code = program_.wait(limit_seconds);
    ended_ = true;
    // Workers of a launcher that was killed itself need a moment to die.
    EXPECT_TRUE(dist::eventually([&] {
      return dist::find_leftover_processes(mark_, false).empty();
    })) << "processes were left behind";
    return code;
  }

  double seconds() const { return program_.seconds(); }
  void send(int signal) const { program_.send(signal); }
  std::string out() const { return program_.out(); }
  std::string err() const { return program_.err(); }
  pid_t pid() const { return program_.pid(); }

  // What the trainer's processes said on stderr, line by line.
  Words complaints() const {
    Words lines;
    std::istringstream text(err());
    for (std::string line; std::getline(text, line);)
      if (line.rfind("lockstep-run: ", 0) != 0) lines.push_back(line);
    return lines;
  }

  // The process of a rank; 0 if there is none (yet).
  pid_t rank_pid(int rank) const {
    for (const pid_t pid : dist::find_leftover_processes(mark_, false)) {
      const std::string environment = dist::text_of("/proc/" + std::to_string(pid) + "/environ");
      const std::string entry = "RANK=" + std::to_string(rank) + '\0';
      if (environment.rfind(entry, 0) == 0 || environment.find('\0' + entry) != std::string::npos)
        return pid;
    }
    return 0;
  }

 private:
  static int next_number() {
    static std::atomic<int> number = 0;
    return ++number;
  }

  std::string mark_;
  dist::Program program_;
  bool ended_ = false;
};

}  // namespace lockstep::testing
