// What a run shows on the terminal: a line per epoch, and a progress bar where somebody watches.
#pragma once

#include <chrono>
#include <string>

#include "lockstep/train/reporter.h"

namespace lockstep::apps {

class TerminalReporter : public train::Reporter {
 public:
  // Without `speaks` (ranks other than 0) nothing is written. The bar goes to stderr if that is a
  // terminal and `shows_bar`.
  TerminalReporter(bool speaks, bool shows_bar);
  // The bar gives way to what comes after, be it an error.
  ~TerminalReporter() override { clear_bar(); }
  TerminalReporter(const TerminalReporter&) = delete;
  TerminalReporter& operator=(const TerminalReporter&) = delete;

  void on_progress(const train::Progress& progress) override;
  void on_epoch(const train::EpochReport& report) override;
  void on_notice(const std::string& line) override { say(line); }

  // A line on stdout; the bar gives way.
  void say(const std::string& line);

 private:
  void clear_bar();

  bool speaks_;
  bool shows_bar_;
  bool bar_is_up_ = false;
  std::chrono::steady_clock::time_point last_drawn_{};
};

}  // namespace lockstep::apps
