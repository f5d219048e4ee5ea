#include "lockstep/train/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lockstep/core/check.h"

namespace lockstep::train {

AppendFile::AppendFile(std::string path)
    : path_(std::move(path)),
      fd_(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  LOCKSTEP_CHECK(fd_ >= 0, "{}: cannot be opened for appending: {}", path_, std::strerror(errno));
}

AppendFile::~AppendFile() { close(fd_); }

void AppendFile::append(std::string_view record) {
  while (!record.empty()) {
    const ssize_t n = write(fd_, record.data(), record.size());
    if (n < 0 && errno == EINTR) continue;
    LOCKSTEP_CHECK(n >= 0, "{}: cannot be written: {}", path_, std::strerror(errno));
    record.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace lockstep::train
