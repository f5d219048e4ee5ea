// Copies workers' output from pipes to log files and, line by line with a prefix, to the console.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/dist/socket.h"

namespace lockstep::dist {

// A thread of its own, so that a console that does not read holds up nothing else.
class OutputPump {
 public:
  OutputPump();
  ~OutputPump();
  OutputPump(const OutputPump&) = delete;
  OutputPump& operator=(const OutputPump&) = delete;

  // A pipe's write end for a worker. `file` (may be none) gets the bytes as they are, `console`
  // (-1: none) whole lines, each behind `prefix`.
  FileDescriptor add(FileDescriptor file, int console, std::string prefix);

  // Copies until every writer has closed its end or the deadline passes; then ends the thread.
  void finish(TimePoint deadline);

 private:
  struct Source;

  void run();
  bool move_some(Source& source);
  void to_console(Source& source, bool at_end);
  bool write_fully(int fd, const char* data, std::size_t size);

  std::mutex mutex_;  // guards the three below
  std::vector<std::unique_ptr<Source>> incoming_;
  bool finishing_ = false;
  TimePoint deadline_ = TimePoint::max();
  FileDescriptor wake_;
  std::thread thread_;
};

}  // namespace lockstep::dist
