// A file that grows record by record while others read it.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::train {

// Creates the file if needed. Every record is on its way to readers when append() returns. Throws
// Error naming the file and the system's reason where opening or writing fails.
class AppendFile {
 public:
  explicit AppendFile(std::string path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void append(std::string_view record);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace lockstep::train
