#include "lockstep/dist/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "lockstep/core/check.h"

namespace lockstep::dist {
namespace {

std::string reason_of(int error) { return std::generic_category().message(error); }

std::shared_ptr<void> map(int fd, std::size_t bytes, int flags) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  LOCKSTEP_CHECK_AS(OutOfMemoryError, data != MAP_FAILED, "cannot map {} bytes of memory: {}",
                    bytes, reason_of(errno));
  return std::shared_ptr<void>(data, [bytes](void* p) { munmap(p, bytes); });
}

}  // namespace

MemoryFile::MemoryFile(std::size_t bytes) : bytes_(bytes) {
  fd_ = memfd_create("lockstep", MFD_CLOEXEC);
  LOCKSTEP_CHECK_AS(OutOfMemoryError, fd_ >= 0, "cannot make shared memory of {} bytes: {}", bytes,
                    reason_of(errno));
  int rc;
  do rc = ftruncate(fd_, static_cast<off_t>(bytes));
  while (rc != 0 && errno == EINTR);
  try {
    LOCKSTEP_CHECK_AS(OutOfMemoryError, rc == 0, "cannot make shared memory of {} bytes: {}", bytes,
                      reason_of(errno));
    data_ = map(fd_, bytes, MAP_SHARED);
  } catch (...) {
    close(fd_);
    throw;
  }
}

MemoryFile::~MemoryFile() { close(fd_); }

std::shared_ptr<void> map_memory_file(pid_t pid, int fd, std::size_t bytes) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  int own;
  do own = open(path.c_str(), O_RDWR | O_CLOEXEC);
  while (own < 0 && errno == EINTR);
  LOCKSTEP_CHECK_AS(
      CommError, own >= 0,
      "cannot open the shared memory of process {} ({}: {}); the ranks of a shm group "
      "must be processes of one user on one host",
      pid, path, reason_of(errno));
  struct stat info {};
  const bool fits = fstat(own, &info) == 0 && S_ISREG(info.st_mode) &&
                    static_cast<std::size_t>(info.st_size) >= bytes;
  std::shared_ptr<void> data;
  try {
    LOCKSTEP_CHECK_AS(CommError, fits, "{} is not the shared memory of {} bytes that was wanted",
                      path, bytes);
    data = map(own, bytes, MAP_SHARED);
  } catch (...) {
    close(own);
    throw;
  }
  close(own);
  return data;
}

std::shared_ptr<void> map_private_memory(std::size_t bytes) {
  return map(-1, bytes, MAP_PRIVATE | MAP_ANONYMOUS);
}

}  // namespace lockstep::dist
