#include "lockstep/dist/launch/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lockstep/core/check.h"
#include "lockstep/dist/socket_address.h"

namespace lockstep::dist {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

// Between fork and exec: only async-signal-safe calls, since other threads may hold any lock.
[[noreturn]] void become(char* const* argv, char* const* envp, const ChildSpec& spec, pid_t parent,
                         int null_fd, int error_fd) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before prctl could take effect
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  // Copies first: the target numbers may be sources of the other stream.
  const int out = ::fcntl(spec.stdout_fd, F_DUPFD_CLOEXEC, 3);
  const int err = ::fcntl(spec.stderr_fd, F_DUPFD_CLOEXEC, 3);
  if ((null_fd < 0 || ::dup2(null_fd, 0) == 0) && ::dup2(out, 1) == 1 && ::dup2(err, 2) == 2) {
    ::execvpe(argv[0], argv, envp);
  }
  const int error = errno;
  while (::write(error_fd, &error, sizeof error) < 0 && errno == EINTR) {
  }
  ::_exit(127);
}

}  // namespace

std::string ExitStatus::str() const {
  if (signal == 0) return fmt::format("exit code {}", code);
  const char* name = ::sigabbrev_np(signal);
  if (name == nullptr) return fmt::format("signal {}", signal);
  return fmt::format("signal {} (SIG{})", signal, name);
}

ChildProcess ChildProcess::start(const ChildSpec& spec) {
  LOCKSTEP_CHECK(!spec.command.empty(), "start: wants a program, was given an empty command");
  const std::vector<char*> argv = pointers(spec.command);
  const std::vector<char*> envp = pointers(spec.environment);
  int ends[2];
  LOCKSTEP_CHECK(::pipe2(ends, O_CLOEXEC) == 0, "start '{}': pipe: {}", spec.command[0],
                 error_text(errno));
  FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  FileDescriptor null;
  if (::isatty(0) == 1) null.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));

  const pid_t parent = ::getpid();
  ChildProcess child;
  child.pid_ = ::fork();
  if (child.pid_ == 0) {
    become(argv.data(), envp.data(), spec, parent, null.get(), write_end.get());
  }
  LOCKSTEP_CHECK(child.pid_ > 0, "start '{}': fork: {}", spec.command[0], error_text(errno));
  ::setpgid(child.pid_, child.pid_);  // whichever of the two comes first
  write_end.reset();
  int error = 0;
  ssize_t n = 0;
  do {
    n = ::read(read_end.get(), &error, sizeof error);  // ends at exec, which closes the pipe
  } while (n < 0 && errno == EINTR);
  LOCKSTEP_CHECK(n <= 0, "can't start '{}': {}", spec.command[0], error_text(error));
  child.pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0)));
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      status_(std::exchange(other.status_, std::nullopt)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    end();
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::move(other.pidfd_);
    status_ = std::exchange(other.status_, std::nullopt);
  }
  return *this;
}

ChildProcess::~ChildProcess() { end(); }

void ChildProcess::end() noexcept {
  if (!running()) return;
  ::kill(-pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

std::optional<ExitStatus> ChildProcess::poll() {
  if (!running()) return status_;
  siginfo_t info{};
  // Looks without reaping, so that the group's number can't be another's when it is killed.
  const int rc = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (rc != 0 && errno == EINTR) return std::nullopt;
  if (rc == 0 && info.si_pid == 0) return std::nullopt;
  ExitStatus status;
  if (rc != 0) {
    status.code = 1;  // somebody else reaped it: how it ended is lost
  } else if (info.si_code == CLD_EXITED) {
    status.code = info.si_status;
  } else {
    status.signal = info.si_status;
  }
  if (rc == 0 && !status.success()) signal_group(SIGKILL);
  int raw = 0;
  while (rc == 0 && ::waitpid(pid_, &raw, 0) < 0 && errno == EINTR) {
  }
  status_ = status;
  pidfd_.reset();
  return status_;
}

void ChildProcess::signal_group(int signal) const {
  if (running()) ::kill(-pid_, signal);
}

}  // namespace lockstep::dist
