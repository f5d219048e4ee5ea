// One body for every store: what Store's contract promises.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/dist/local_store.h"
#include "lockstep/dist/prefix_store.h"
#include "lockstep/dist/tcp_store.h"

namespace lockstep::dist {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::shared_ptr<Store> make_store(const std::string& kind) {
  if (kind == "local") return std::make_shared<LocalStore>();
  TcpStoreOptions options;
  options.serve = true;
  options.timeout = std::chrono::seconds(20);
  auto server = std::make_shared<TcpStore>(options);
  if (kind == "tcp") return server;
  return std::make_shared<PrefixStore>("group", server);
}

class StoreContract : public ::testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<Store> store = make_store(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract, ::testing::Values("local", "tcp", "prefix"),
                         [](const auto& info) { return info.param; });

TEST_P(StoreContract, GivesBackWhatWasSet) {
  std::string bytes("a\0b\n\xff", 5);
  store->set("k", bytes);
  EXPECT_EQ(store->get("k"), bytes);
  store->set("k", "");
  EXPECT_EQ(store->get("k"), "");
  store->set("", "empty key");
  EXPECT_EQ(store->get(""), "empty key");
}

TEST_P(StoreContract, CarriesLargeValues) {
  std::string large(std::size_t{20} << 20, 'x');
  for (std::size_t i = 0; i < large.size(); i += 4099) large[i] = static_cast<char>('a' + i % 26);
  store->set("large", large);
  EXPECT_TRUE(store->get("large") == large);
}

TEST_P(StoreContract, AddCountsFromZeroAndRefusesText) {
  EXPECT_EQ(store->add("n", 5), 5);
  EXPECT_EQ(store->add("n", -7), -2);
  EXPECT_EQ(store->get("n"), "-2");
  store->set("text", "12x");
  EXPECT_THROW(store->add("text", 1), Error);
  store->set("big", "9223372036854775807");
  EXPECT_THROW(store->add("big", 1), Error);
  EXPECT_EQ(store->get("big"), "9223372036854775807");
}

TEST_P(StoreContract, CompareSetWritesOnlyOverWhatIsExpected) {
  EXPECT_EQ(store->compare_set("k", "other", "new"), "");
  EXPECT_FALSE(store->check("k"));
  EXPECT_EQ(store->compare_set("k", "", "first"), "first");
  EXPECT_EQ(store->compare_set("k", "", "second"), "first");
  EXPECT_EQ(store->compare_set("k", "first", "second"), "second");
  EXPECT_EQ(store->get("k"), "second");
}

TEST_P(StoreContract, EraseCheckAndCount) {
  EXPECT_EQ(store->num_keys(), 0);
  store->set("a", "1");
  store->set("b", "2");
  EXPECT_EQ(store->num_keys(), 2);
  EXPECT_TRUE(store->erase("a"));
  EXPECT_FALSE(store->erase("a"));
  EXPECT_FALSE(store->check("a"));
  EXPECT_TRUE(store->check("b"));
  EXPECT_EQ(store->num_keys(), 1);
}

TEST_P(StoreContract, GetEndsAtItsDeadlineAndNamesTheKey) {
  const auto start = steady_clock::now();
  try {
    store->get("never/there", milliseconds(80));
    FAIL() << "get came back";
  } catch (const TimeoutError& e) {
    EXPECT_NE(std::string(e.what()).find("never/there"), std::string::npos) << e.what();
  }
  const auto took = steady_clock::now() - start;
  EXPECT_GE(took, milliseconds(75));
  EXPECT_LT(took, milliseconds(2000));
  store->set("after", "works");  // a timeout leaves the store usable
  EXPECT_EQ(store->get("after"), "works");
}

TEST_P(StoreContract, WaitNamesTheMissingKeysOnly) {
  store->set("here", "1");
  const std::vector<std::string> keys = {"here", "gone1", "gone2"};
  try {
    store->wait(keys, milliseconds(50));
    FAIL() << "wait came back";
  } catch (const TimeoutError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("gone1"), std::string::npos) << text;
    EXPECT_NE(text.find("gone2"), std::string::npos) << text;
    EXPECT_EQ(text.find("here"), std::string::npos) << text;
  }
  store->wait({}, milliseconds(0));
}

TEST_P(StoreContract, AWaitingGetDoesNotHoldUpOtherThreads) {
  std::string got;
  std::thread waiter([&] { got = store->get("late", std::chrono::seconds(20)); });
  std::this_thread::sleep_for(milliseconds(30));
  store->set("other", "1");
  EXPECT_EQ(store->get("other"), "1");
  store->add("late", 7);  // any way of writing wakes the waiter
  waiter.join();
  EXPECT_EQ(got, "7");
}

TEST_P(StoreContract, WaitReturnsOnceTheLastKeyIsThere) {
  std::thread waiter([&] {
    const std::vector<std::string> keys = {"x", "y"};
    store->wait(keys, std::chrono::seconds(20));
    store->set("through", store->get("x") + store->get("y"));
  });
  store->set("x", "1");
  EXPECT_FALSE(store->check("through"));
  store->compare_set("y", "", "2");
  waiter.join();
  EXPECT_EQ(store->get("through", milliseconds(1000)), "12");
}

TEST_P(StoreContract, ConcurrentAddsLoseNothing) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) store->add("sum", 1);
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(store->add("sum", 0), 800);
}

TEST(PrefixStore, KeepsGroupsApart) {
  auto below = std::make_shared<LocalStore>();
  PrefixStore a("a", below);
  PrefixStore b("b", below);
  a.set("k", "1");
  EXPECT_FALSE(b.check("k"));
  EXPECT_EQ(below->get("a/k"), "1");
  EXPECT_THROW(PrefixStore("p", nullptr), Error);
}

}  // namespace
}  // namespace lockstep::dist
