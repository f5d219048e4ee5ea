#include "lockstep/dist/prefix_store.h"

#include <utility>
#include <vector>

#include "lockstep/core/check.h"

namespace lockstep::dist {

PrefixStore::PrefixStore(std::string prefix, std::shared_ptr<Store> store)
    : prefix_(std::move(prefix) + "/"), store_(std::move(store)) {
  LOCKSTEP_CHECK(store_ != nullptr, "prefix store '{}': wants a store below it, was given none",
                 prefix_);
}

void PrefixStore::set(const std::string& key, std::string value) {
  store_->set(join(key), std::move(value));
}

std::string PrefixStore::get(const std::string& key, Duration timeout) {
  return store_->get(join(key), timeout);
}

std::int64_t PrefixStore::add(const std::string& key, std::int64_t delta) {
  return store_->add(join(key), delta);
}

std::string PrefixStore::compare_set(const std::string& key, const std::string& expected,
                                     std::string desired) {
  return store_->compare_set(join(key), expected, std::move(desired));
}

bool PrefixStore::check(const std::string& key) { return store_->check(join(key)); }

void PrefixStore::wait(std::span<const std::string> keys, Duration timeout) {
  std::vector<std::string> joined;
  joined.reserve(keys.size());
  for (const std::string& key : keys) joined.push_back(join(key));
  store_->wait(joined, timeout);
}

bool PrefixStore::erase(const std::string& key) { return store_->erase(join(key)); }

std::int64_t PrefixStore::num_keys() { return store_->num_keys(); }

}  // namespace lockstep::dist
