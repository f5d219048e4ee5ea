#include "lockstep/core/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "lockstep/core/check.h"

namespace lockstep {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& step, int error) {
  throw Error(fmt::format("cannot read \"{}\": {}: {}", path, step,
                          std::generic_category().message(error)));
}

}  // namespace

FileReader::FileReader(const std::string& path) : path_(path) {
  do {
    // Without O_NONBLOCK a named pipe would wait here for ever.
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) fail(path, "opening it", errno);
  struct stat info;
  const bool known = ::fstat(fd_, &info) == 0;
  if (!known || !S_ISREG(info.st_mode)) {
    ::close(fd_);
    throw Error(fmt::format("cannot read \"{}\": it is not a regular file", path));
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
}

FileReader::~FileReader() { ::close(fd_); }

void FileReader::read_at(std::uint64_t offset, void* to, std::size_t bytes) const {
  if (offset > size_ || bytes > size_ - offset)
    damaged(size_, fmt::format("the file ends here, but {} bytes from byte {} on are needed", bytes,
                               offset));
  constexpr std::size_t kMost = std::size_t{1} << 30;  // the system gives at most 2 GiB a call
  char* next = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = ::pread(fd_, next, std::min(bytes, kMost), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path_, fmt::format("reading at byte {}", offset), errno);
    if (n == 0) damaged(offset, "the file became shorter while it was read");
    next += n;
    offset += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
}

void FileReader::damaged(std::uint64_t offset, const std::string& why) const {
  throw Error(fmt::format("\"{}\": damaged at byte {}: {}", path_, offset, why));
}

std::vector<std::uint8_t> read_whole_file(const std::string& path) {
  const FileReader file(path);
  std::vector<std::uint8_t> bytes(file.size());
  file.read_at(0, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace lockstep
