#include "lockstep/core/log.h"

#include <mutex>
#include <utility>

namespace lockstep {
namespace {

struct SinkSlot {
  std::mutex mutex;
  LogSink sink;
};

// One per process, as the embedder's log is. Never destroyed: a worker may log during exit.
SinkSlot& slot() {
  static SinkSlot* instance = new SinkSlot;
  return *instance;
}

}  // namespace

void set_log_sink(LogSink sink) {
  SinkSlot& s = slot();
  std::lock_guard lock(s.mutex);
  s.sink = std::move(sink);
}

void log(LogLevel level, std::string_view message) {
  SinkSlot& s = slot();
  std::lock_guard lock(s.mutex);
  if (s.sink) s.sink(level, message);
}

}  // namespace lockstep
