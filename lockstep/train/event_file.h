// TensorBoard event files: scalars that the real TensorBoard shows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/train/append_file.h"

namespace lockstep::train {

struct ScalarPoint {
  std::string tag;
  float value = 0;
};

// One record of the file: length, masked CRC-32C of it, data, masked CRC-32C of the data
// (TensorFlow's TFRecord framing).
std::string tf_record(std::string_view data);
// Serialised tensorflow.Event messages (event.proto): the first one of a file, and a summary.
std::string version_event(double wall_time);
// From here on: a reader drops what other files of the folder hold from this step on.
std::string session_start_event(double wall_time, std::int64_t step);
std::string scalars_event(double wall_time, std::int64_t step,
                          const std::vector<ScalarPoint>& scalars);
// CRC-32C (Castagnoli), as in RFC 3720.
std::uint32_t crc32c(std::string_view data);

// Appends to `folder`/events.out.tfevents.<seconds>.<host>.<pid>; makes the folder if needed.
class EventFile {
 public:
  // Of a run that starts at `first_step`: what an earlier, interrupted one wrote from there on is
  // no longer shown.
  explicit EventFile(const std::string& folder, std::int64_t first_step = 0);

  void add(std::int64_t step, const std::vector<ScalarPoint>& scalars);
  const std::string& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

}  // namespace lockstep::train
