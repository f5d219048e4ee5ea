#include "lockstep/dist/launch/leftovers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <set>
#include <sstream>
#include <system_error>

#include "lockstep/core/check.h"
#include "lockstep/dist/socket.h"

namespace lockstep::dist {
namespace {

namespace fs = std::filesystem;

// As far as it can be read: the process may end at any moment, and reading then fails.
std::string contents(const fs::path& path) {
  std::string text;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char block[4096];
  for (ssize_t n = 0;;) {
    n = ::read(fd, block, sizeof(block));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(block, static_cast<std::size_t>(n));
  }
  ::close(fd);
  return text;
}

bool has_variable(const fs::path& process, const std::string& tag) {
  const std::string block = '\0' + contents(process / "environ");
  return block.find('\0' + tag + '\0') != std::string::npos;
}

// The parent's number, and whether the process still runs. The name in brackets may hold anything.
bool living_child_of(const fs::path& process, pid_t parent) {
  const std::string stat = contents(process / "stat");
  const std::size_t bracket = stat.rfind(')');
  if (bracket == std::string::npos) return false;
  std::istringstream rest(stat.substr(bracket + 1));
  rest.imbue(std::locale::classic());
  char state = ' ';
  pid_t found = 0;
  rest >> state >> found;
  return found == parent && state != 'Z' && state != 'X';
}

}  // namespace

std::vector<pid_t> find_leftover_processes(const std::string& tag, bool adopted) {
  std::vector<pid_t> found;
  const pid_t self = ::getpid();
  std::error_code error;
  for (auto it = fs::directory_iterator("/proc", error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    pid_t pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc() || end != name.data() + name.size() || pid == self) continue;
    struct stat owner {};
    if (::stat(it->path().c_str(), &owner) != 0 || owner.st_uid != ::getuid()) continue;
    if ((adopted && living_child_of(it->path(), self)) || has_variable(it->path(), tag)) {
      found.push_back(pid);
    }
  }
  return found;
}

int end_leftover_processes(const std::string& tag, bool adopted, Duration patience,
                           Duration timeout) {
  const TimePoint kill_at = deadline_after(patience);
  const TimePoint deadline = deadline_after(patience + timeout);
  std::set<pid_t> killed;
  while (true) {
    const std::vector<pid_t> found = find_leftover_processes(tag, adopted);
    const TimePoint now = std::chrono::steady_clock::now();
    for (const pid_t pid : found) {
      if (now < kill_at) break;
      if (::kill(pid, SIGKILL) == 0) killed.insert(pid);
    }
    // Those that this process adopted are its to reap; of others this is an error without effect.
    for (const pid_t pid : killed) {
      int status = 0;
      ::waitpid(pid, &status, WNOHANG);
    }
    if (found.empty() || now >= deadline) return static_cast<int>(killed.size());
    poll_until(-1, 0, deadline_after(std::chrono::milliseconds(10)));
  }
}

int remove_shared_memory(const std::string& job_id) {
  const std::string prefix = fmt::format("lockstep-{}-{}-", ::getuid(), job_id);
  int removed = 0;
  std::error_code error;
  for (auto it = fs::directory_iterator("/dev/shm", error);
       !error && it != fs::directory_iterator(); it.increment(error)) {
    std::error_code ignored;
    if (it->path().filename().string().starts_with(prefix) && fs::remove(it->path(), ignored)) {
      ++removed;
    }
  }
  return removed;
}

}  // namespace lockstep::dist
