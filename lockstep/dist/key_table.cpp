#include "lockstep/dist/key_table.h"

#include <charconv>
#include <utility>

#include "lockstep/core/check.h"

namespace lockstep::dist {

void KeyTable::set(const std::string& key, std::string value) {
  values_.insert_or_assign(key, std::move(value));
}

std::optional<std::string> KeyTable::find(const std::string& key) const {
  const auto it = values_.find(key);
  if (it == values_.end()) return std::nullopt;
  return it->second;
}

std::int64_t KeyTable::add(const std::string& key, std::int64_t delta) {
  std::int64_t current = 0;
  if (const auto it = values_.find(key); it != values_.end()) {
    const std::string& text = it->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), current);
    LOCKSTEP_CHECK(error == std::errc() && end == text.data() + text.size(),
                   "store: add to key '{}' wants a whole number there, found '{}'", key,
                   text.substr(0, 64));
  }
  std::int64_t sum = 0;
  LOCKSTEP_CHECK(!__builtin_add_overflow(current, delta, &sum),
                 "store: key '{}' holds {}; adding {} overflows 64 bits", key, current, delta);
  values_.insert_or_assign(key, std::to_string(sum));
  return sum;
}

std::string KeyTable::compare_set(const std::string& key, const std::string& expected,
                                  std::string desired) {
  const auto it = values_.find(key);
  if (it == values_.end()) {
    if (!expected.empty()) return "";
    values_.emplace(key, desired);
    return desired;
  }
  if (it->second == expected) it->second = std::move(desired);
  return it->second;
}

}  // namespace lockstep::dist
