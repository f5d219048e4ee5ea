// Addresses, interfaces and deadlines of plain sockets.
#include "lockstep/dist/socket.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/dist/socket_address.h"

namespace lockstep::dist {
namespace {

using std::chrono::milliseconds;

TimePoint in(int ms) { return deadline_after(milliseconds(ms)); }

std::string message_of(const auto& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "no exception";
}

// A wrong interface must never be taken silently (pytorch/gloo#335).
TEST(Listener, BindsToTheAddressThatWasAsked) {
  EXPECT_EQ(resolve_interface("lo"), "127.0.0.1");
  EXPECT_EQ(Listener("lo", 0).address(), "127.0.0.1");
  // All of 127/8 is this host: a second address besides lo's first.
  Listener second("127.0.0.2", 0);
  EXPECT_EQ(second.address(), "127.0.0.2");
  Socket client = connect_to("127.0.0.2", second.port(), in(5000), {"127.0.0.3", true});
  EXPECT_EQ(client.local_address(), "127.0.0.3");
  Socket server = second.accept(in(5000));
  EXPECT_EQ(server.local_address(), "127.0.0.2");
  EXPECT_EQ(server.peer().substr(0, 10), "127.0.0.3:");
  EXPECT_THROW(connect_to("127.0.0.1", second.port(), in(50)), TimeoutError);
}

TEST(Listener, AnUnknownInterfaceIsAnErrorThatNamesIt) {
  EXPECT_NE(message_of([] { resolve_interface("nope0"); }).find("nope0"), std::string::npos);
  EXPECT_NE(message_of([] { Listener("nope0", 0); }).find("nope0"), std::string::npos);
  Listener there("127.0.0.1", 0);
  const std::string text = message_of([&] {
    connect_to("127.0.0.1", there.port(), in(2000), {"nope0", true});
  });
  EXPECT_NE(text.find("nope0"), std::string::npos) << text;
}

TEST(Listener, AForeignAddressIsAnErrorThatNamesIt) {
  const std::string text = message_of([] { Listener("192.0.2.7", 0); });
  EXPECT_NE(text.find("192.0.2.7"), std::string::npos) << text;
}

TEST(Listener, PortsOutOfRangeAreRefused) {
  EXPECT_THROW(Listener("127.0.0.1", -1), Error);
  EXPECT_THROW(Listener("127.0.0.1", 65536), Error);
  EXPECT_THROW(connect_to("127.0.0.1", 0, in(50)), Error);
}

TEST(Listener, AcceptEndsAtItsDeadline) {
  Listener listener("127.0.0.1", 0);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(listener.accept(in(60)), TimeoutError);
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(55));
}

TEST(Connect, UnknownHostsAndRefusals) {
  const std::string text = message_of([] { connect_to("no-such-host.invalid", 80, in(300)); });
  EXPECT_NE(text.find("no-such-host.invalid"), std::string::npos) << text;
  int port = 0;
  {
    Listener reserve("127.0.0.1", 0);
    port = reserve.port();
  }
  EXPECT_THROW(connect_to("127.0.0.1", port, in(5000), {"", false}), CommError);
}

class Pair : public ::testing::Test {
 protected:
  Listener listener{"127.0.0.1", 0};
  Socket a = connect_to("127.0.0.1", listener.port(), in(5000));
  Socket b = listener.accept(in(5000));
};

TEST_F(Pair, MovesManyBytesBothWays) {
  std::vector<std::byte> out(std::size_t{8} << 20);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i * 31 >> 3);
  std::vector<std::byte> there(out.size());
  std::vector<std::byte> back(out.size());
  std::thread other([&] {
    b.recv_all(there, in(20000));
    b.send_all(there, in(20000));
  });
  a.send_all(out, in(20000));
  a.recv_all(back, in(20000));
  other.join();
  EXPECT_TRUE(back == out);
  a.send_all({}, in(0));  // nothing to move needs no time
  a.recv_all({}, in(0));
}

TEST_F(Pair, SendingToOneThatDoesNotReadIsATimeout) {
  const std::vector<std::byte> out(std::size_t{64} << 20);
  EXPECT_THROW(a.send_all(out, in(80)), TimeoutError);
}

TEST_F(Pair, ReceivingWhatDoesNotComeIsATimeout) {
  std::byte one;
  EXPECT_THROW(a.recv_all(std::span(&one, 1), in(40)), TimeoutError);
}

TEST_F(Pair, APeerThatLeftIsACommErrorNotATimeout) {
  b = Socket();
  std::byte one{};
  try {
    a.recv_all(std::span(&one, 1), in(5000));
    FAIL() << "received from a closed peer";
  } catch (const TimeoutError&) {
    FAIL() << "waited";
  } catch (const CommError&) {
  }
  // The first send may still be taken by the kernel; no SIGPIPE may end the process.
  EXPECT_THROW(
      {
        for (int i = 0; i < 100; ++i) {
          a.send_all(std::span(&one, 1), in(5000));
          std::this_thread::sleep_for(milliseconds(1));
        }
      },
      CommError);
}

TEST_F(Pair, ShutdownWakesAReaderInAnotherThread) {
  std::thread waker([&] {
    std::this_thread::sleep_for(milliseconds(30));
    a.shutdown();
  });
  std::byte one;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(a.recv_all(std::span(&one, 1), in(20000)), CommError);
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(5000));
  waker.join();
}

TEST(SocketAddress, Ipv6IsWrittenInBrackets) {
  const SocketAddress six = SocketAddress::numeric("::1", 80);
  EXPECT_EQ(six.str(), "[::1]:80");
  EXPECT_THROW(SocketAddress::numeric("localhost", 80), Error);
}

TEST(Deadline, TheLongestTimeoutDoesNotOverflow) {
  EXPECT_EQ(deadline_after(Duration::max()), TimePoint::max());
}

}  // namespace
}  // namespace lockstep::dist
