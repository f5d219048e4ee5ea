// The sink: what it gets, and that nothing it does harms the work.
#include "lockstep/core/log.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::testing {
namespace {

class Log : public ::testing::Test {
 protected:
  void TearDown() override { set_log_sink({}); }
};

TEST_F(Log, IsSilentWithoutASink) { log(LogLevel::kError, "nobody listens"); }

TEST_F(Log, GoesToTheLastSinkAlone) {
  std::vector<std::string> first, second;
  set_log_sink([&](LogLevel, std::string_view text) { first.emplace_back(text); });
  log(LogLevel::kInfo, "one");
  set_log_sink([&](LogLevel level, std::string_view text) {
    EXPECT_EQ(level, LogLevel::kWarning);
    second.emplace_back(text);
  });
  log(LogLevel::kWarning, "two");
  EXPECT_EQ(first, std::vector<std::string>{"one"});
  EXPECT_EQ(second, std::vector<std::string>{"two"});
}

TEST_F(Log, IsCalledByOneThreadAtATime) {
  int records = 0;  // not atomic: the calls are one after another
  set_log_sink([&](LogLevel, std::string_view) { ++records; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 500; ++i) log(LogLevel::kDebug, "x");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(records, 4000);
}

TEST_F(Log, AFailingSinkDoesNotFailTheWork) {
  int calls = 0;
  set_log_sink([&](LogLevel, std::string_view) {
    ++calls;
    throw std::runtime_error("disk full");
  });
  EXPECT_NO_THROW(log(LogLevel::kInfo, "a"));
  EXPECT_NO_THROW(log(LogLevel::kInfo, "b"));
  EXPECT_EQ(calls, 2);
}

TEST_F(Log, ASinkThatLogsDoesNotWaitForItself) {
  int calls = 0;
  set_log_sink([&](LogLevel, std::string_view) {
    ++calls;
    log(LogLevel::kInfo, "from the sink");
  });
  log(LogLevel::kInfo, "from the work");
  EXPECT_EQ(calls, 1);
}

TEST_F(Log, TheOldSinksEndMayLog) {
  int heard = 0;
  std::shared_ptr<int> last_words(new int(0), [](int* p) {
    delete p;
    log(LogLevel::kInfo, "the old sink is gone");
  });
  set_log_sink([last_words](LogLevel, std::string_view) {});
  last_words.reset();
  set_log_sink([&](LogLevel, std::string_view) { ++heard; });
  EXPECT_EQ(heard, 1);
}

}  // namespace
}  // namespace lockstep::testing
