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

// A sink that logs itself would wait for itself: its own words are dropped.
thread_local bool in_sink = false;

}  // namespace

void set_log_sink(LogSink sink) {
  SinkSlot& s = slot();
  {
    std::lock_guard lock(s.mutex);
    std::swap(s.sink, sink);
  }
  // The old sink ends here, outside the lock: it may log.
}

void log(LogLevel level, std::string_view message) {
  if (in_sink) return;
  SinkSlot& s = slot();
  std::lock_guard lock(s.mutex);
  if (!s.sink) return;
  in_sink = true;
  try {
    s.sink(level, message);
  } catch (...) {  // a sink that fails must not fail the work that it hears of
  }
  in_sink = false;
}

}  // namespace lockstep
