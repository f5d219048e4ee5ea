// The key-value store through which ranks find each other and agree before a process group exists.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

namespace lockstep::dist {

using Duration = std::chrono::milliseconds;

// PyTorch's default for a store operation.
inline constexpr Duration kDefaultStoreTimeout = std::chrono::seconds(300);

// Values are bytes; a key that was never set does not exist. All functions may be called from any
// thread. A lost server is CommError; a wait past its timeout is TimeoutError and names the key.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  virtual void set(const std::string& key, std::string value) = 0;

  // Blocks until the key exists.
  virtual std::string get(const std::string& key, Duration timeout = kDefaultStoreTimeout) = 0;

  // Adds to the decimal number under key (0 if absent) and returns the sum. A value that is not a
  // number is an Error.
  virtual std::int64_t add(const std::string& key, std::int64_t delta) = 0;

  // Sets the key to `desired` if it holds `expected`, or if it is absent and `expected` is empty.
  // Returns what the key holds afterwards ("" if it is still absent).
  virtual std::string compare_set(const std::string& key, const std::string& expected,
                                  std::string desired) = 0;

  // True if the key exists. Never waits.
  virtual bool check(const std::string& key) = 0;

  // Blocks until all keys exist; the TimeoutError names those that are missing.
  virtual void wait(std::span<const std::string> keys, Duration timeout = kDefaultStoreTimeout) = 0;

  // True if the key existed.
  virtual bool erase(const std::string& key) = 0;

  virtual std::int64_t num_keys() = 0;
};

}  // namespace lockstep::dist
