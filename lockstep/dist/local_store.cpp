#include "lockstep/dist/local_store.h"

#include <utility>
#include <vector>

#include "lockstep/core/check.h"

namespace lockstep::dist {

void LocalStore::set(const std::string& key, std::string value) {
  {
    std::lock_guard lock(mutex_);
    table_.set(key, std::move(value));
  }
  changed_.notify_all();
}

std::string LocalStore::get(const std::string& key, Duration timeout) {
  std::unique_lock lock(mutex_);
  LOCKSTEP_CHECK_AS(TimeoutError,
                    changed_.wait_for(lock, timeout, [&] { return table_.contains(key); }),
                    "store: key '{}' was not set within {} ms", key, timeout.count());
  return *table_.find(key);
}

std::int64_t LocalStore::add(const std::string& key, std::int64_t delta) {
  std::int64_t sum = 0;
  {
    std::lock_guard lock(mutex_);
    sum = table_.add(key, delta);
  }
  changed_.notify_all();
  return sum;
}

std::string LocalStore::compare_set(const std::string& key, const std::string& expected,
                                    std::string desired) {
  std::string held;
  {
    std::lock_guard lock(mutex_);
    held = table_.compare_set(key, expected, std::move(desired));
  }
  changed_.notify_all();
  return held;
}

bool LocalStore::check(const std::string& key) {
  std::lock_guard lock(mutex_);
  return table_.contains(key);
}

void LocalStore::wait(std::span<const std::string> keys, Duration timeout) {
  const auto missing = [&] {
    std::vector<std::string> absent;
    for (const std::string& key : keys) {
      if (!table_.contains(key)) absent.push_back(key);
    }
    return absent;
  };
  std::unique_lock lock(mutex_);
  LOCKSTEP_CHECK_AS(TimeoutError,
                    changed_.wait_for(lock, timeout, [&] { return missing().empty(); }),
                    "store: keys {} were not set within {} ms", missing(), timeout.count());
}

bool LocalStore::erase(const std::string& key) {
  std::lock_guard lock(mutex_);
  return table_.erase(key);
}

std::int64_t LocalStore::num_keys() {
  std::lock_guard lock(mutex_);
  return table_.size();
}

}  // namespace lockstep::dist
