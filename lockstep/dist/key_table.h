// The table of keys that LocalStore and the TCP store's server share; no locks, no waiting.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace lockstep::dist {

// Store's semantics without the waiting. Not thread-safe: the owner serialises.
class KeyTable {
 public:
  void set(const std::string& key, std::string value);
  std::optional<std::string> find(const std::string& key) const;
  std::int64_t add(const std::string& key, std::int64_t delta);
  std::string compare_set(const std::string& key, const std::string& expected, std::string desired);
  bool contains(const std::string& key) const { return values_.contains(key); }
  bool erase(const std::string& key) { return values_.erase(key) > 0; }
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace lockstep::dist
