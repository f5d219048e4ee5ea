// MemoryFile: a block of memory that other processes of this host and user can map. It has no name,
// so nothing is left behind, however its processes end.
#pragma once

#include <cstddef>
#include <memory>

#include <sys/types.h>

namespace lockstep::dist {

class MemoryFile {
 public:
  // Zero-filled. Throws OutOfMemoryError.
  explicit MemoryFile(std::size_t bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int fd() const { return fd_; }
  std::size_t bytes() const { return bytes_; }
  void* data() const { return data_.get(); }
  // Stays mapped as long as this pointer, also after the file.
  const std::shared_ptr<void>& mapping() const { return data_; }

 private:
  std::size_t bytes_;
  int fd_ = -1;
  std::shared_ptr<void> data_;
};

// Maps the file that process `pid` holds as its descriptor `fd`. Throws CommError where it cannot
// be opened (the process has ended, is another user's or on another host) or is smaller than
// `bytes`.
std::shared_ptr<void> map_memory_file(pid_t pid, int fd, std::size_t bytes);

// Zero-filled pages of this process alone, taken from the system as they are touched.
std::shared_ptr<void> map_private_memory(std::size_t bytes);

}  // namespace lockstep::dist
