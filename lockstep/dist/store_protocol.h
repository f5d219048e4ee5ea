// The messages between a TcpStore and its server, and how they lie on the wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::dist {

enum class StoreOp : std::uint8_t {
  kHello,       // fields: magic, job token; must come first
  kSet,         // key, value
  kGet,         // key; answered once the key exists
  kAdd,         // key; number: delta
  kCompareSet,  // key, expected, desired
  kCheck,       // key; answer's number 0 or 1
  kWait,        // keys; answered once all exist
  kErase,       // key; answer's number 0 or 1
  kCount,       // answer's number
  kOk,          // an answer: number and at most one field
  kError,       // an answer: the field is the reason
};

struct StoreMessage {
  StoreOp op = StoreOp::kOk;
  std::int64_t number = 0;
  std::vector<std::string> fields;
};

inline constexpr std::string_view kStoreMagic = "lockstep store 1";
inline constexpr std::size_t kStoreHeaderBytes = 8;                 // the body's length
inline constexpr std::size_t kMaxStoreBody = std::size_t{1} << 30;  // 1 GiB
inline constexpr std::size_t kMaxHelloBody = 4096;

// Frame: u64 body length; body: u8 op, i64 number, u32 field count, each field u64 length + bytes.
// Little-endian. Error if the body would exceed kMaxStoreBody.
std::vector<std::byte> encode(const StoreMessage& message);

// The body's length from a header.
std::uint64_t decode_length(std::span<const std::byte> header);

// Nothing if the body is malformed: a stranger on the port.
std::optional<StoreMessage> decode_body(std::span<const std::byte> body);

}  // namespace lockstep::dist
