// Reads bytes of a file at given offsets; short files and system errors become Errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

class FileReader {
 public:
  // Throws Error if `path` is missing, unreadable or no regular file.
  explicit FileReader(const std::string& path);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // at the time of opening

  // Exactly `bytes` bytes from `offset` on. Throws Error naming file and offset if the file ends
  // before that or reading fails.
  void read_at(std::uint64_t offset, void* to, std::size_t bytes) const;

  // The error of a damaged file: "PATH: damaged at byte OFFSET: why".
  [[noreturn]] void damaged(std::uint64_t offset, const std::string& why) const;

 private:
  std::string path_;
  std::uint64_t size_ = 0;
  int fd_ = -1;
};

std::vector<std::uint8_t> read_whole_file(const std::string& path);

}  // namespace lockstep
