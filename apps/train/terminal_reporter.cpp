#include "terminal_reporter.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace lockstep::apps {
namespace {

constexpr auto kRedrawEvery = std::chrono::milliseconds(100);

int terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

TerminalReporter::TerminalReporter(bool speaks, bool shows_bar)
    : speaks_(speaks), shows_bar_(speaks && shows_bar && isatty(STDERR_FILENO)) {}

void TerminalReporter::on_progress(const train::Progress& progress) {
  if (!shows_bar_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_drawn_ < kRedrawEvery && progress.step != progress.steps) return;
  last_drawn_ = now;
  bar_is_up_ = true;
  std::fprintf(stderr, "\r\033[K%s",
               train::progress_line(progress, terminal_columns() - 1).c_str());
  std::fflush(stderr);
}

void TerminalReporter::on_epoch(const train::EpochReport& report) {
  say(train::epoch_line(report));
}

void TerminalReporter::say(const std::string& line) {
  if (!speaks_) return;
  clear_bar();
  std::fprintf(stdout, "%s\n", line.c_str());
  std::fflush(stdout);
}

void TerminalReporter::clear_bar() {
  if (!bar_is_up_) return;
  bar_is_up_ = false;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

}  // namespace lockstep::apps
