#include "lockstep/dist/store_protocol.h"

#include <bit>
#include <cstring>
#include <string_view>

#include "lockstep/core/check.h"

namespace lockstep::dist {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire format is the memory's");

constexpr std::size_t kFixedBytes = 1 + 8 + 4;

template <class T>
void put(std::vector<std::byte>& out, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

// Reads from the front; false if too few bytes are left.
template <class T>
bool take(std::span<const std::byte>& in, T& value) {
  if (in.size() < sizeof value) return false;
  std::memcpy(&value, in.data(), sizeof value);
  in = in.subspan(sizeof value);
  return true;
}

}  // namespace

std::vector<std::byte> encode(const StoreMessage& message) {
  std::size_t body = kFixedBytes;
  for (const std::string& field : message.fields) body += 8 + field.size();
  LOCKSTEP_CHECK(body <= kMaxStoreBody, "store: a message of {} bytes is over the limit of {}",
                 body, kMaxStoreBody);
  std::vector<std::byte> out;
  out.reserve(kStoreHeaderBytes + body);
  put(out, static_cast<std::uint64_t>(body));
  put(out, static_cast<std::uint8_t>(message.op));
  put(out, message.number);
  put(out, static_cast<std::uint32_t>(message.fields.size()));
  for (const std::string& field : message.fields) {
    put(out, static_cast<std::uint64_t>(field.size()));
    const auto* bytes = reinterpret_cast<const std::byte*>(field.data());
    out.insert(out.end(), bytes, bytes + field.size());
  }
  return out;
}

std::uint64_t decode_length(std::span<const std::byte> header) {
  std::uint64_t length = 0;
  LOCKSTEP_CHECK(take(header, length), "store: a header of {} bytes wants {}", header.size(),
                 kStoreHeaderBytes);
  return length;
}

std::optional<StoreMessage> decode_body(std::span<const std::byte> body) {
  StoreMessage message;
  std::uint8_t op = 0;
  std::uint32_t count = 0;
  if (!take(body, op) || !take(body, message.number) || !take(body, count)) return std::nullopt;
  if (op > static_cast<std::uint8_t>(StoreOp::kError)) return std::nullopt;
  message.op = static_cast<StoreOp>(op);
  if (count > body.size() / 8) return std::nullopt;
  message.fields.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint64_t length = 0;
    if (!take(body, length) || length > body.size()) return std::nullopt;
    message.fields.emplace_back(reinterpret_cast<const char*>(body.data()), length);
    body = body.subspan(length);
  }
  if (!body.empty()) return std::nullopt;
  return message;
}

}  // namespace lockstep::dist
