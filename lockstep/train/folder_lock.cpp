#include "lockstep/train/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "lockstep/core/check.h"

namespace lockstep::train {
namespace {

template <class Call>
auto retry(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

std::string this_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return fmt::format("process {} on {}", ::getpid(), host.data());
}

// What the holder has written; it may not have come to that yet.
std::string holder_of(int fd) {
  std::array<char, 512> text{};
  const ssize_t n = retry([&] { return ::pread(fd, text.data(), text.size(), 0); });
  return n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : "another process";
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) {
  const std::string path = folder + "/.lock";
  fd_ = retry([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666); });
  LOCKSTEP_CHECK(fd_ >= 0, "run folder {}: its lock cannot be opened: {}", folder,
                 std::generic_category().message(errno));
  if (retry([&] { return ::flock(fd_, LOCK_EX | LOCK_NB); }) != 0) {
    const bool taken = errno == EWOULDBLOCK;
    const std::string holder = taken ? holder_of(fd_) : "";
    ::close(fd_);
    fd_ = -1;
    if (!taken) return;
    throw Error(
        fmt::format("run folder {}: {} is training in it; --exp_name gives this run another one",
                    folder, holder));
  }
  // For whoever comes second; that the lock holds does not hang on it.
  const std::string name = this_process();
  if (::ftruncate(fd_, 0) == 0) (void)!::pwrite(fd_, name.data(), name.size(), 0);
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace lockstep::train
