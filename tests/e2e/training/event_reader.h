// Reads the scalars of TensorBoard event files: TFRecord frames around protocol buffers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/temp_folder.h"

namespace lockstep::testing {

class WireReader {
 public:
  explicit WireReader(std::string_view data) : data_(data) {}
  bool done() const { return data_.empty(); }
  template <class T>
  T fixed() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string_view bytes() { return take(varint()); }
  std::string_view take(std::size_t n) {
    if (n > data_.size()) throw std::runtime_error("event file: truncated");
    const std::string_view head = data_.substr(0, n);
    data_.remove_prefix(n);
    return head;
  }

 private:
  std::string_view data_;
};

using Scalars = std::map<std::string, std::map<std::int64_t, float>>;  // tag, step

inline void add_summary(WireReader summary, std::int64_t step, Scalars& scalars) {
  while (!summary.done()) {
    summary.varint();  // Summary.value
    WireReader value(summary.bytes());
    std::string tag;
    float number = 0;
    while (!value.done()) {
      switch (value.varint()) {
        case 1 << 3 | 2:
          tag = value.bytes();
          break;
        case 2 << 3 | 5:
          number = value.fixed<float>();
          break;
        default:
          throw std::runtime_error("event file: unknown field of a value");
      }
    }
    scalars[tag][step] = number;
  }
}

inline void add_event(std::string_view data, Scalars& scalars) {
  WireReader event(data);
  std::int64_t step = 0;
  while (!event.done()) {
    switch (event.varint()) {
      case 1 << 3 | 1:
        event.fixed<double>();
        break;
      case 2 << 3 | 0:
        step = static_cast<std::int64_t>(event.varint());
        break;
      case 3 << 3 | 2:
        event.bytes();
        break;
      case 5 << 3 | 2:
        add_summary(WireReader(event.bytes()), step, scalars);
        break;
      case 7 << 3 | 2:  // SessionLog: the start of a run, from which on older points go
        event.bytes();
        for (auto& [tag, points] : scalars) points.erase(points.lower_bound(step), points.end());
        break;
      default:
        throw std::runtime_error("event file: unknown field of an event");
    }
  }
}

// Of all files of the folder in the order of their times, as TensorBoard shows them.
inline Scalars read_scalars(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end(), [](const auto& a, const auto& b) {
    return std::filesystem::last_write_time(a) < std::filesystem::last_write_time(b);
  });
  Scalars scalars;
  for (const auto& path : paths) {
    const std::string data = read_bytes(path);
    WireReader file(data);
    while (!file.done()) {
      const auto length = file.fixed<std::uint64_t>();
      file.take(4);
      add_event(file.take(length), scalars);
      file.take(4);
    }
  }
  return scalars;
}

}  // namespace lockstep::testing
