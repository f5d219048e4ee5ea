// Runs a program to its end, or for a while, with its output in files.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/dist/environment.h"
#include "lockstep/dist/launch/child_process.h"
#include "support/temp_folder.h"

namespace lockstep::dist {

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Is the process there and not just a zombie?
inline bool is_alive(pid_t pid) {
  const std::string stat = text_of("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t bracket = stat.rfind(')');
  return bracket != std::string::npos && stat[bracket + 2] != 'Z' && stat[bracket + 2] != 'X';
}

// Until `done` or 10 s; whether it came.
bool eventually(const auto& done) {
  for (int i = 0; i < 2000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return done();
}

// A started program. Variables of this process's own job are kept from it.
class Program {
 public:
  explicit Program(std::vector<std::string> command, std::vector<std::string> extra = {}) {
    ChildSpec spec;
    spec.command = std::move(command);
    for (std::string& entry : environment_block()) {
      const std::string name = entry.substr(0, entry.find('='));
      const bool own = name == "RANK" || name == "WORLD_SIZE" || name.starts_with("LOCKSTEP_") ||
                       name.starts_with("PET_") || name.starts_with("MASTER_") ||
                       name.starts_with("OMPI_") || name.starts_with("SLURM_") ||
                       name == "OMP_NUM_THREADS";
      if (!own) spec.environment.push_back(std::move(entry));
    }
    spec.environment.insert(spec.environment.end(), extra.begin(), extra.end());
    FileDescriptor out(::open(out_path().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    FileDescriptor err(::open(err_path().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    spec.stdout_fd = out.get();
    spec.stderr_fd = err.get();
    start_ = std::chrono::steady_clock::now();
    child_ = ChildProcess::start(spec);
  }

  // The shell's code; a program that is not through after the limit is killed and -1.
  int wait(double limit_seconds = 30) {
    while (seconds() < limit_seconds) {
      if (const auto status = child_.poll()) return status->shell_code();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    child_.signal_group(SIGKILL);
    ADD_FAILURE() << "not through after " << limit_seconds << " s; stderr:\n" << err();
    return -1;
  }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  void send(int signal) const { ::kill(child_.pid(), signal); }
  pid_t pid() const { return child_.pid(); }
  std::string out() const { return text_of(out_path()); }
  std::string err() const { return text_of(err_path()); }

 private:
  std::string out_path() const { return folder_.path() + "/out"; }
  std::string err_path() const { return folder_.path() + "/err"; }

  lockstep::testing::TempFolder folder_;
  std::chrono::steady_clock::time_point start_;
  ChildProcess child_;
};

}  // namespace lockstep::dist
