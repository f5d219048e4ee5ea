// A store inside one process, for ranks that are threads.
#pragma once

#include <condition_variable>
#include <mutex>
#include <span>
#include <string>

#include "lockstep/dist/key_table.h"
#include "lockstep/dist/store.h"

namespace lockstep::dist {

class LocalStore final : public Store {
 public:
  void set(const std::string& key, std::string value) override;
  std::string get(const std::string& key, Duration timeout = kDefaultStoreTimeout) override;
  std::int64_t add(const std::string& key, std::int64_t delta) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          std::string desired) override;
  bool check(const std::string& key) override;
  void wait(std::span<const std::string> keys, Duration timeout = kDefaultStoreTimeout) override;
  bool erase(const std::string& key) override;
  std::int64_t num_keys() override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  KeyTable table_;
};

}  // namespace lockstep::dist
