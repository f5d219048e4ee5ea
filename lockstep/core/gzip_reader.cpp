#include "lockstep/core/gzip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "lockstep/core/check.h"
#include "lockstep/core/file_reader.h"

namespace lockstep {

namespace {
constexpr std::size_t kChunk = std::size_t{64} << 10;
constexpr std::size_t kMostPerCall = std::size_t{1} << 30;  // zlib counts in 32 bits
constexpr int kGzipWindow = 15 + 16;                        // largest window, gzip framing
}  // namespace

struct GzipReader::State {
  explicit State(const std::string& path) : file(path) {
    std::uint8_t magic[2] = {};
    if (file.size() >= sizeof magic) file.read_at(0, magic, sizeof magic);
    gzip = magic[0] == 0x1f && magic[1] == 0x8b;
    if (!gzip) return;
    input.resize(std::min<std::uint64_t>(kChunk, file.size()));
    LOCKSTEP_CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK,
                   "cannot read \"{}\": zlib refused to start", path);
    started = true;
  }
  ~State() {
    if (started) inflateEnd(&stream);
  }

  // Where in the file the decompressor stands.
  std::uint64_t position() const { return gzip ? taken - stream.avail_in : read; }

  [[noreturn]] void bad_stream(const std::string& why) const {
    file.damaged(position(), fmt::format("gzip: {} ({} bytes were decompressed)", why, read));
  }

  void refill() {
    if (stream.avail_in > 0 || taken == file.size()) return;
    const std::size_t n = std::min<std::uint64_t>(input.size(), file.size() - taken);
    file.read_at(taken, input.data(), n);
    taken += n;
    stream.next_in = input.data();
    stream.avail_in = static_cast<uInt>(n);
  }

  // Up to `bytes` bytes, 0 only at the end of the last member.
  std::size_t inflate_some(std::uint8_t* to, std::size_t bytes) {
    stream.next_out = to;
    stream.avail_out = static_cast<uInt>(bytes);
    while (stream.avail_out == bytes) {
      refill();
      if (member_ended) {
        if (stream.avail_in == 0) return 0;
        inflateReset(&stream);  // another member follows, as gzip allows
        member_ended = false;
      }
      if (stream.avail_in == 0) bad_stream("the file ends within the compressed data");
      const int status = inflate(&stream, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        member_ended = true;
      } else if (status != Z_OK) {
        bad_stream(stream.msg ? stream.msg : "damaged data");
      }
    }
    return bytes - stream.avail_out;
  }

  FileReader file;
  bool gzip = false;
  bool started = false;
  bool member_ended = false;
  std::uint64_t read = 0;   // bytes given out
  std::uint64_t taken = 0;  // bytes of the file handed to zlib
  std::vector<std::uint8_t> input;
  z_stream stream{};
};

GzipReader::GzipReader(const std::string& path) : state_(std::make_unique<State>(path)) {}

GzipReader::~GzipReader() = default;

void GzipReader::read(void* to, std::size_t bytes) {
  State& s = *state_;
  if (!s.gzip) {
    s.file.read_at(s.read, to, bytes);
    s.read += bytes;
    return;
  }
  auto* next = static_cast<std::uint8_t*>(to);
  while (bytes > 0) {
    const std::size_t n = s.inflate_some(next, std::min(bytes, kMostPerCall));
    if (n == 0) s.bad_stream(fmt::format("the decompressed data end {} bytes too early", bytes));
    next += n;
    bytes -= n;
    s.read += n;
  }
}

void GzipReader::expect_end() {
  State& s = *state_;
  std::uint8_t extra = 0;
  const bool more = s.gzip ? s.inflate_some(&extra, 1) > 0 : s.read < s.file.size();
  if (more) s.file.damaged(s.read, "more data than the header says");
}

std::uint64_t GzipReader::most_left() const {
  constexpr std::uint64_t kBestRatio = 1032;
  const State& s = *state_;
  const std::uint64_t left = s.file.size() - std::min(s.position(), s.file.size());
  if (!s.gzip) return left;
  // zlib may hold a few bytes and one match of 258 that it has not given out yet.
  constexpr std::uint64_t kHeldBack = 64;
  return (left + kHeldBack) * kBestRatio;
}

void GzipReader::damaged(std::uint64_t offset, const std::string& why) const {
  state_->file.damaged(offset, why);
}

}  // namespace lockstep
