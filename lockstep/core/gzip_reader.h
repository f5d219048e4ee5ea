// Reads a file's bytes in order, decompressing where it is gzip (told by its first bytes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace lockstep {

class GzipReader {
 public:
  explicit GzipReader(const std::string& path);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Exactly `bytes` bytes. Throws Error naming the file, the offset in the decompressed bytes (and,
  // for gzip, in the file) and the reason: end of file, damaged stream, wrong checksum.
  void read(void* to, std::size_t bytes);

  // Throws Error unless all bytes have been read; checks gzip's checksum and length.
  void expect_end();

  // Upper bound of the bytes that can still come: what is left of a plain file, 1032 times that
  // for gzip (deflate's best ratio).
  std::uint64_t most_left() const;

  // The error of contents that make no sense: "PATH: damaged at byte OFFSET: why".
  [[noreturn]] void damaged(std::uint64_t offset, const std::string& why) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
