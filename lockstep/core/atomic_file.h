// Writes a whole file so that its name always shows the old contents or the new, never a mixture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

// The bytes go to a hidden file ".<name>.<16 hex digits>.tmp" in the same folder; commit() syncs
// it, renames it over `path` and syncs the folder. Without commit() the destructor removes it and
// `path` stays as it was. A writer holds a lock on its hidden file, so the next writer of the same
// path can tell files left behind by a killed process from living ones, and removes them. An
// existing file's permissions are kept; a symbolic link is followed. Every failure (disk full,
// size limit, permissions) is an Error that names the file, the step and the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  std::uint64_t written() const { return written_; }

  // At most once, as the last call.
  void commit();

 private:
  std::string path_;  // links resolved
  std::string folder_;
  std::string temp_path_;
  std::uint64_t written_ = 0;
  int fd_ = -1;
};

// The same in one call.
void write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace lockstep
