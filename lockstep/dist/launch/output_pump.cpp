#include "lockstep/dist/launch/output_pump.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <utility>

#include "lockstep/core/check.h"
#include "lockstep/dist/socket_address.h"

namespace lockstep::dist {
namespace {

// A line longer than this goes out in pieces.
constexpr std::size_t kMaxLine = 1 << 16;

void notify(int eventfd) {
  const std::uint64_t one = 1;
  while (::write(eventfd, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

}  // namespace

struct OutputPump::Source {
  FileDescriptor pipe;
  FileDescriptor file;
  int console = -1;
  std::string prefix;
  std::string line;  // what has come since the last line's end
};

OutputPump::OutputPump() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  LOCKSTEP_CHECK(wake_, "output pump: eventfd: {}", error_text(errno));
  thread_ = std::thread([this] { run(); });
}

OutputPump::~OutputPump() {
  if (thread_.joinable()) finish(std::chrono::steady_clock::now());
}

FileDescriptor OutputPump::add(FileDescriptor file, int console, std::string prefix) {
  int ends[2];
  LOCKSTEP_CHECK(::pipe2(ends, O_CLOEXEC) == 0, "output pump: pipe: {}", error_text(errno));
  auto source = std::make_unique<Source>();
  source->pipe.reset(ends[0]);
  FileDescriptor write_end(ends[1]);
  ::fcntl(source->pipe.get(), F_SETFL, O_NONBLOCK);  // our end only; the worker's stays blocking
  source->file = std::move(file);
  source->console = console;
  source->prefix = std::move(prefix);
  {
    std::lock_guard lock(mutex_);
    incoming_.push_back(std::move(source));
  }
  notify(wake_.get());
  return write_end;
}

void OutputPump::finish(TimePoint deadline) {
  {
    std::lock_guard lock(mutex_);
    finishing_ = true;
    deadline_ = deadline;
  }
  notify(wake_.get());
  thread_.join();
}

void OutputPump::run() {
  std::vector<std::unique_ptr<Source>> sources;
  std::vector<pollfd> polled;
  while (true) {
    TimePoint deadline;
    {
      std::lock_guard lock(mutex_);
      std::ranges::move(incoming_, std::back_inserter(sources));
      incoming_.clear();
      if (finishing_ && sources.empty()) return;
      deadline = deadline_;
    }
    const auto now = std::chrono::steady_clock::now();
    const bool late = now >= deadline;
    polled.assign({{wake_.get(), POLLIN, 0}});
    for (const auto& source : sources) polled.push_back({source->pipe.get(), POLLIN, 0});
    const auto left = std::chrono::ceil<Duration>(deadline - now).count();
    const int wait = deadline == TimePoint::max()
                         ? -1
                         : static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
    if (::poll(polled.data(), polled.size(), wait) < 0) continue;
    if (polled[0].revents != 0) {
      std::uint64_t count = 0;
      while (::read(wake_.get(), &count, sizeof count) < 0 && errno == EINTR) {
      }
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const bool open = polled[i + 1].revents == 0 || move_some(*sources[i]);
      if (open && !late) continue;
      to_console(*sources[i], true);
      sources[i].reset();
    }
    std::erase(sources, nullptr);
  }
}

// False at the end of the stream.
bool OutputPump::move_some(Source& source) {
  std::array<char, 16384> chunk;
  const ssize_t n = ::read(source.pipe.get(), chunk.data(), chunk.size());
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0) return false;
  const auto size = static_cast<std::size_t>(n);
  // A full disk must not end the job: the file stays short, the console goes on.
  if (source.file && !write_fully(source.file.get(), chunk.data(), size)) source.file.reset();
  if (source.console >= 0) {
    source.line.append(chunk.data(), size);
    to_console(source, false);
  }
  return true;
}

void OutputPump::to_console(Source& source, bool at_end) {
  std::string& line = source.line;
  std::string out;
  std::size_t start = 0;
  while (start < line.size()) {
    std::size_t end = line.find('\n', start);
    if (end == std::string::npos && !at_end && line.size() - start < kMaxLine) break;
    end = std::min(end, line.size());
    out += source.prefix + line.substr(start, end - start) + "\n";
    start = end + 1;
  }
  line.erase(0, std::min(start, line.size()));
  if (!out.empty() && !write_fully(source.console, out.data(), out.size())) source.console = -1;
}

bool OutputPump::write_fully(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    // A pipe that polls writable takes PIPE_BUF bytes without blocking.
    pollfd entry{fd, POLLOUT, 0};
    const int ready = ::poll(&entry, 1, 100);
    if (ready <= 0) {
      std::lock_guard lock(mutex_);
      if (finishing_ && std::chrono::steady_clock::now() >= deadline_) return false;
      continue;
    }
    const ssize_t n = ::write(fd, data, std::min<std::size_t>(size, PIPE_BUF));
    if (n < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (n > 0) {
      data += n;
      size -= static_cast<std::size_t>(n);
    }
  }
  return true;
}

}  // namespace lockstep::dist
