// Where the library's words go. Silent until the embedder sets a sink; the library itself never
// writes to stdout or stderr.
#pragma once

#include <functional>
#include <string_view>

namespace lockstep {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

using LogSink = std::function<void(LogLevel, std::string_view message)>;

// Replaces the process's sink; an empty one silences. The sink may be called from any thread, one
// call at a time, and must not call set_log_sink. What it throws is dropped, and so is what it logs
// itself.
void set_log_sink(LogSink sink);

void log(LogLevel level, std::string_view message);

}  // namespace lockstep
