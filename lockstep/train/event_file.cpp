#include "lockstep/train/event_file.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <filesystem>

#include "lockstep/core/check.h"

namespace lockstep::train {
namespace {

constexpr std::uint32_t kCastagnoli = 0x82f63b78;  // reversed

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ (c & 1 ? kCastagnoli : 0);
    table[i] = c;
  }
  return table;
}

constexpr auto kCrcTable = make_crc_table();

template <class T>
void append_little_endian(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// Protocol buffers' wire types.
constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

void append_key(std::string& out, int field, int wire_type) {
  append_varint(out, static_cast<std::uint64_t>(field << 3 | wire_type));
}

void append_bytes(std::string& out, int field, std::string_view data) {
  append_key(out, field, kBytes);
  append_varint(out, data.size());
  out += data;
}

std::string event_head(double wall_time) {
  std::string event;
  append_key(event, 1, kFixed64);
  append_little_endian(event, std::bit_cast<std::uint64_t>(wall_time));
  return event;
}

double wall_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string new_event_path(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  LOCKSTEP_CHECK(!error, "event file: folder {} cannot be made: {}", folder, error.message());
  char host[256] = "host";
  gethostname(host, sizeof(host) - 1);
  return fmt::format("{}/events.out.tfevents.{}.{}.{}", folder,
                     static_cast<std::int64_t>(wall_now()), host, getpid());
}

std::uint32_t masked_crc(std::string_view data) {
  const std::uint32_t c = crc32c(data);
  return ((c >> 15) | (c << 17)) + 0xa282ead8u;
}

}  // namespace

std::uint32_t crc32c(std::string_view data) {
  std::uint32_t c = 0xffffffffu;
  for (const char byte : data)
    c = (c >> 8) ^ kCrcTable[(c ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~c;
}

std::string tf_record(std::string_view data) {
  std::string record;
  append_little_endian(record, static_cast<std::uint64_t>(data.size()));
  append_little_endian(record, masked_crc(record));
  record += data;
  append_little_endian(record, masked_crc(data));
  return record;
}

std::string version_event(double wall_time) {
  std::string event = event_head(wall_time);
  append_bytes(event, 3, "brain.Event:2");
  return event;
}

std::string session_start_event(double wall_time, std::int64_t step) {
  std::string session;
  append_key(session, 1, kVarint);  // SessionLog.status = START
  append_varint(session, 1);
  std::string event = event_head(wall_time);
  append_key(event, 2, kVarint);
  append_varint(event, static_cast<std::uint64_t>(step));
  append_bytes(event, 7, session);
  return event;
}

std::string scalars_event(double wall_time, std::int64_t step,
                          const std::vector<ScalarPoint>& scalars) {
  std::string summary;
  for (const ScalarPoint& s : scalars) {
    std::string value;
    append_bytes(value, 1, s.tag);
    append_key(value, 2, kFixed32);
    append_little_endian(value, std::bit_cast<std::uint32_t>(s.value));
    append_bytes(summary, 1, value);
  }
  std::string event = event_head(wall_time);
  append_key(event, 2, kVarint);
  append_varint(event, static_cast<std::uint64_t>(step));
  append_bytes(event, 5, summary);
  return event;
}

EventFile::EventFile(const std::string& folder, std::int64_t first_step)
    : file_(new_event_path(folder)) {
  file_.append(tf_record(version_event(wall_now())));
  file_.append(tf_record(session_start_event(wall_now(), first_step)));
}

void EventFile::add(std::int64_t step, const std::vector<ScalarPoint>& scalars) {
  file_.append(tf_record(scalars_event(wall_now(), step, scalars)));
}

}  // namespace lockstep::train
