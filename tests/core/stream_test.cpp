#include "lockstep/core/stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/core/error.h"
#include "support/message.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using testing::message_of;

// Holds a stream until it is opened, or for ten seconds.
class Gate {
 public:
  void open() { open_ = true; }
  std::function<void()> task() {
    return [this] {
      const auto end = std::chrono::steady_clock::now() + 10s;
      while (!open_ && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    };
  }

 private:
  std::atomic<bool> open_ = false;
};

TEST(Stream, TasksRunInOrderBesideTheCaller) {
  Stream stream = Stream::create();
  EXPECT_EQ(stream.device(), kCpu);
  std::vector<int> order;
  std::thread::id worker;
  for (int i = 0; i < 100; ++i)
    stream.enqueue([&, i] {
      order.push_back(i);
      worker = std::this_thread::get_id();
    });
  stream.synchronize();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_NE(worker, std::this_thread::get_id());
  EXPECT_TRUE(stream.query());
}

TEST(Stream, AnEventHappensAfterWhatCameBeforeIt) {
  Gate gate;
  Stream stream = Stream::create();
  stream.enqueue(gate.task());
  Event event = stream.record();
  EXPECT_FALSE(event.query());
  EXPECT_FALSE(stream.query());
  gate.open();
  event.synchronize();
  EXPECT_TRUE(event.query());
  EXPECT_TRUE(Event().query());
}

TEST(Stream, AStreamWaitsForAnothersEventAndTheCallerDoesNot) {
  Gate gate;
  std::atomic<int> value = 0;
  Stream first = Stream::create(), second = Stream::create();
  first.enqueue(gate.task());
  first.enqueue([&] { value = 7; });
  second.wait(first.record());
  int seen = -1;
  second.enqueue([&] { seen = value; });
  EXPECT_FALSE(second.query());
  gate.open();
  second.synchronize();
  EXPECT_EQ(seen, 7);
}

TEST(Stream, TimeBetweenEvents) {
  Stream stream = Stream::create();
  const Event start = stream.record();
  stream.enqueue([] { std::this_thread::sleep_for(20ms); });
  const Event end = stream.record();
  end.synchronize();
  EXPECT_GE(end.since(start), 20ms);
  EXPECT_LT(end.since(start), 10s);

  Gate gate;
  stream.enqueue(gate.task());
  const Event later = stream.record();
  EXPECT_EQ(message_of<Error>([&] { later.since(start); }),
            "event: the time between two events was asked for before the second happened");
  EXPECT_THROW(start.since(later), Error);
  gate.open();
}

TEST(Stream, EveryWaitHasADeadline) {
  Gate gate;
  Stream stream = Stream::create();
  stream.enqueue(gate.task());
  const Event event = stream.record();
  EXPECT_EQ(message_of<TimeoutError>([&] { event.synchronize(20ms); }),
            "event: had not happened after 0.02 s");
  EXPECT_EQ(message_of<TimeoutError>([&] { stream.synchronize(20ms); }),
            "stream: 2 tasks were not done after 0.02 s");
  gate.open();
  stream.synchronize();
}

TEST(Stream, AnErrorDropsWhatComesAfterItAndIsToldOnce) {
  Stream stream = Stream::create(), other = Stream::create();
  bool ran = false, other_ran = false;
  Gate gate;
  stream.enqueue(gate.task());  // so that all is queued before the error
  const Event before = stream.record();
  stream.enqueue([] { throw std::runtime_error("no paper"); });
  stream.enqueue([&] { ran = true; });
  const Event after = stream.record();
  other.wait(after);
  other.enqueue([&] { other_ran = true; });
  gate.open();
  EXPECT_NO_THROW(before.synchronize());
  EXPECT_EQ(message_of<std::runtime_error>([&] { after.synchronize(); }), "no paper");
  EXPECT_EQ(message_of<std::runtime_error>([&] { stream.synchronize(); }), "no paper");
  EXPECT_EQ(message_of<std::runtime_error>([&] { other.synchronize(); }), "no paper");
  EXPECT_FALSE(ran);
  EXPECT_FALSE(other_ran);

  stream.enqueue([&] { ran = true; });
  stream.synchronize();
  EXPECT_TRUE(ran);
}

TEST(Stream, AnEventThatFailedLongAgoStillFailsItsWaiters) {
  Stream stream = Stream::create(), other = Stream::create();
  stream.enqueue([] { throw std::runtime_error("no paper"); });
  const Event event = stream.record();
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
  other.wait(event);
  EXPECT_EQ(message_of<std::runtime_error>([&] { other.synchronize(); }), "no paper");
}

TEST(Stream, TheLastHandleWaitsForItsTasks) {
  int done = 0;
  {
    Stream stream = Stream::create();
    for (int i = 0; i < 10; ++i) stream.enqueue([&] { ++done; });
  }
  EXPECT_EQ(done, 10);
}

TEST(Stream, TheLastHandleMayGoAwayInATask) {
  Event end;
  {
    auto stream = std::make_shared<std::optional<Stream>>(Stream::create());
    Gate gate;
    (*stream)->enqueue(gate.task());
    (*stream)->enqueue([stream] { stream->reset(); });
    end = (*stream)->record();
    gate.open();  // from here on the handle is the task's
    end.synchronize();
  }
  EXPECT_TRUE(end.query());
}

TEST(Stream, MistakesAreNamed) {
  EXPECT_EQ(message_of<Error>([] {
              Stream::create({DeviceType::kCpu, 1});
            }),
            "stream: there is no device cpu with index 1");
  EXPECT_THROW(Stream::create({DeviceType::kCuda, 99}), Error);
  Stream stream = Stream::create();
  EXPECT_EQ(message_of<Error>([&] { stream.enqueue(nullptr); }),
            "stream: an empty task was enqueued");
  stream.enqueue([&] { stream.synchronize(); });
  EXPECT_EQ(message_of<Error>([&] { stream.synchronize(); }),
            "stream: synchronize was called from a task of the stream itself");
}

}  // namespace
}  // namespace lockstep
