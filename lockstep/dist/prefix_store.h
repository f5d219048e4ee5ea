// A view of another store in which every key carries a prefix, so that several groups share one.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "lockstep/dist/store.h"

namespace lockstep::dist {

// Key k is key prefix + "/" + k of the store below. num_keys counts the whole store's keys.
class PrefixStore final : public Store {
 public:
  PrefixStore(std::string prefix, std::shared_ptr<Store> store);

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
  std::string join(const std::string& key) const { return prefix_ + key; }

  std::string prefix_;
  std::shared_ptr<Store> store_;
};

}  // namespace lockstep::dist
