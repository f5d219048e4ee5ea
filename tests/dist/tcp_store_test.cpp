// The TCP store where it can go wrong: lost servers, strangers, deadlines, signals, many clients.
#include "lockstep/dist/tcp_store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/dist/store_protocol.h"
#include "lockstep/dist/store_server.h"

namespace lockstep::dist {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TcpStoreOptions client_of(int port, milliseconds timeout = std::chrono::seconds(20)) {
  TcpStoreOptions options;
  options.port = port;
  options.timeout = timeout;
  return options;
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "no exception";
}

TEST(TcpStore, SixteenClientsMeet) {
  StoreServer server("127.0.0.1", 0);
  std::vector<std::thread> ranks;
  std::atomic<int> right = 0;
  for (int rank = 0; rank < 16; ++rank) {
    ranks.emplace_back([&, rank] {
      TcpStore store(client_of(server.port()));
      store.set("r" + std::to_string(rank), std::string(10000, static_cast<char>('a' + rank)));
      std::vector<std::string> keys;
      for (int other = 0; other < 16; ++other) keys.push_back("r" + std::to_string(other));
      store.wait(keys, std::chrono::seconds(20));
      bool all = true;
      for (int other = 0; other < 16; ++other) {
        all &= store.get(keys[static_cast<std::size_t>(other)]) ==
               std::string(10000, static_cast<char>('a' + other));
      }
      right += all;
    });
  }
  for (auto& rank : ranks) rank.join();
  EXPECT_EQ(right, 16);
}

TEST(TcpStore, AClientMayComeBeforeItsServer) {
  int port = 0;
  {
    Listener reserve("127.0.0.1", 0);
    port = reserve.port();
  }
  std::string got;
  std::thread early([&] { got = TcpStore(client_of(port)).get("k", std::chrono::seconds(20)); });
  std::this_thread::sleep_for(milliseconds(60));
  TcpStoreOptions options = client_of(port);
  options.serve = true;
  TcpStore server(options);
  server.set("k", "v");
  early.join();
  EXPECT_EQ(got, "v");
}

TEST(TcpStore, ConnectEndsAtItsDeadline) {
  int port = 0;
  {
    Listener reserve("127.0.0.1", 0);
    port = reserve.port();
  }
  const auto start = steady_clock::now();
  EXPECT_THROW(TcpStore store(client_of(port, milliseconds(150))), TimeoutError);
  const auto took = steady_clock::now() - start;
  EXPECT_LT(took, milliseconds(2000));
}

TEST(TcpStore, AServersDeathReachesWaitingClientsAtOnce) {
  auto server = std::make_unique<StoreServer>("127.0.0.1", 0);
  std::atomic<int> lost = 0;
  std::vector<std::thread> clients;
  const int port = server->port();
  std::atomic<int> waiting = 0;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      TcpStore store(client_of(port));
      ++waiting;
      try {
        store.get("never", std::chrono::seconds(60));
      } catch (const TimeoutError&) {
      } catch (const CommError&) {
        ++lost;
      }
      // And later operations do not hang either.
      EXPECT_THROW(store.check("never"), CommError);
    });
  }
  while (waiting < 4) std::this_thread::sleep_for(milliseconds(1));
  std::this_thread::sleep_for(milliseconds(30));
  const auto start = steady_clock::now();
  server.reset();
  for (auto& client : clients) client.join();
  EXPECT_EQ(lost, 4);
  EXPECT_LT(steady_clock::now() - start, milliseconds(3000));
}

// A frozen server keeps its connections: only the deadline helps.
TEST(TcpStore, ALingeringServerLetsItsClientsFinish) {
  TcpStoreOptions options = client_of(0);
  options.serve = true;
  options.linger = std::chrono::seconds(10);
  auto server = std::make_unique<TcpStore>(options);
  auto client = std::make_unique<TcpStore>(client_of(server->port()));
  std::thread leaver([&] {
    std::this_thread::sleep_for(milliseconds(60));
    client->set("k", "v");
    EXPECT_EQ(client->get("k"), "v");
    client.reset();
  });
  const auto start = steady_clock::now();
  server.reset();
  EXPECT_GE(steady_clock::now() - start, milliseconds(55));
  EXPECT_LT(steady_clock::now() - start, milliseconds(5000));
  leaver.join();
}

TEST(TcpStore, ALingeringServerDoesNotWaitForEver) {
  TcpStoreOptions options = client_of(0);
  options.serve = true;
  options.linger = milliseconds(60);
  auto server = std::make_unique<TcpStore>(options);
  TcpStore client(client_of(server->port()));
  server.reset();
  EXPECT_THROW(client.check("k"), CommError);
}

TEST(TcpStore, AServerThatDoesNotAnswerIsATimeout) {
  Listener frozen("127.0.0.1", 0);
  EXPECT_THROW(TcpStore store(client_of(frozen.port(), milliseconds(120))), Error);
}

TEST(TcpStore, APortInUseIsNamed) {
  Listener other("127.0.0.1", 0);
  TcpStoreOptions options = client_of(other.port());
  options.serve = true;
  const std::string text = message_of([&] { TcpStore store(options); });
  EXPECT_NE(text.find(std::to_string(other.port())), std::string::npos) << text;
  EXPECT_THROW(TcpStore store(options), PortInUseError);
}

TEST(TcpStore, SpanSkipsStrangersAndOtherJobs) {
  Listener stranger("127.0.0.1", 0);
  const int first = stranger.port();
  std::unique_ptr<StoreServer> other;
  try {
    other = std::make_unique<StoreServer>("127.0.0.1", first + 1, "job A");
  } catch (const PortInUseError&) {
    GTEST_SKIP() << "port " << first + 1 << " is taken";
  }
  std::thread closer([&] { stranger.accept(deadline_after(std::chrono::seconds(20))); });
  TcpStoreOptions options = client_of(first);
  options.port_span = 8;
  options.token = "job B";
  options.serve = true;
  TcpStore server(options);
  EXPECT_GT(server.port(), first + 1);
  options.serve = false;
  TcpStore client(options);
  EXPECT_EQ(client.port(), server.port());
  client.set("k", "v");
  EXPECT_EQ(server.get("k"), "v");
  closer.join();
}

TEST(TcpStore, AnotherJobsTokenIsRefused) {
  StoreServer server("127.0.0.1", 0, "job A");
  TcpStoreOptions options = client_of(server.port());
  options.token = "job B";
  const std::string text = message_of([&] { TcpStore store(options); });
  EXPECT_NE(text.find("another job"), std::string::npos) << text;
}

// What port scanners and lost clients send must neither end nor block the server.
TEST(TcpStore, GarbageIsClosedAndTheServerGoesOn) {
  StoreServer server("127.0.0.1", 0);
  const std::vector<std::string> garbage = {
      "GET / HTTP/1.0\r\n\r\n", std::string(64, '\xff'), std::string(8, '\0') + "x",
      std::string("\x0d\0\0\0\0\0\0\0\x02", 9) + std::string(8, '\0') + "\xff\xff\xff\xff"};
  for (const std::string& bytes : garbage) {
    Socket socket = connect_to("127.0.0.1", server.port(), deadline_after(std::chrono::seconds(5)));
    socket.send_all(std::as_bytes(std::span(bytes)), deadline_after(std::chrono::seconds(5)));
    std::byte one;
    EXPECT_THROW(socket.recv_all(std::span(&one, 1), deadline_after(std::chrono::seconds(5))),
                 CommError);
  }
  TcpStore store(client_of(server.port()));
  store.set("k", "v");
  EXPECT_EQ(store.get("k"), "v");
}

TEST(StoreProtocol, EveryTruncationIsRefused) {
  const StoreMessage message{StoreOp::kSet, -3, {"key", std::string("v\0", 2)}};
  const std::vector<std::byte> frame = encode(message);
  const std::span body = std::span(frame).subspan(kStoreHeaderBytes);
  const auto whole = decode_body(body);
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->fields, message.fields);
  EXPECT_EQ(whole->number, -3);
  for (std::size_t n = 0; n < body.size(); ++n) EXPECT_FALSE(decode_body(body.first(n))) << n;
  std::vector<std::byte> longer(body.begin(), body.end());
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_body(longer));
}

// An application's own timer signal interrupts system calls (marian-nmt/marian-dev#660).
std::atomic<int> ticks = 0;

TEST(TcpStore, GoesOnUnderATimerSignal) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { ++ticks; };
  ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);  // no SA_RESTART
  const itimerval every_ms{{0, 1000}, {0, 1000}};
  const itimerval never{};
  StoreServer server("127.0.0.1", 0);
  TcpStore store(client_of(server.port()));
  ASSERT_EQ(::setitimer(ITIMER_REAL, &every_ms, nullptr), 0);
  const std::string large(std::size_t{8} << 20, 'q');
  store.set("large", large);
  const bool same = store.get("large") == large;
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(80));
    TcpStore(client_of(server.port())).set("late", "1");
  });
  const std::string got = store.get("late", std::chrono::seconds(20));
  EXPECT_THROW(store.get("never", milliseconds(40)), TimeoutError);
  late.join();
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  EXPECT_TRUE(same);
  EXPECT_EQ(got, "1");
  EXPECT_GT(ticks, 20);
}

}  // namespace
}  // namespace lockstep::dist
