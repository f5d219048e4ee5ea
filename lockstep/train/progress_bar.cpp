#include "lockstep/train/progress_bar.h"

#include <vector>

#include "lockstep/core/check.h"
#include "lockstep/train/plain_nan.h"

namespace lockstep::train {
namespace {

constexpr int kBarCells = 24;

struct Part {
  std::string text;
  int columns;
};

Part plain(std::string text) {
  const int columns = static_cast<int>(text.size());
  return {std::move(text), columns};
}

Part bar(std::int64_t done, std::int64_t all) {
  const auto filled = static_cast<int>(all > 0 ? done * kBarCells / all : 0);
  std::string text;
  for (int i = 0; i < kBarCells; ++i) text += i < filled ? "━" : "─";
  return {text, kBarCells};
}

}  // namespace

std::string progress_line(const Progress& p, int columns) {
  std::vector<Part> parts;
  parts.push_back(plain(fmt::format("epoch {}/{}", p.epoch, p.epochs)));
  parts.push_back(bar(p.step, p.steps));
  parts.push_back(plain(fmt::format("{}/{}", p.step, p.steps)));
  parts.push_back(plain(fmt::format("loss {:.4f}", plain_nan(p.loss))));
  parts.push_back(plain(fmt::format("acc {:.1f} %", plain_nan(100 * p.accuracy))));
  if (p.images_per_second > 0)
    parts.push_back(plain(fmt::format("{:.0f} img/s", p.images_per_second)));
  std::string line;
  int used = 0;
  for (const Part& part : parts) {
    const int gap = line.empty() ? 0 : 2;
    if (used + gap + part.columns > columns) break;
    line += std::string(gap, ' ') + part.text;
    used += gap + part.columns;
  }
  return line;
}

}  // namespace lockstep::train
