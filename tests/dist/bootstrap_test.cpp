// Ranks joining: complete worlds, doubles, disagreements, absentees.
#include "lockstep/dist/bootstrap.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/dist/local_store.h"
#include "lockstep/dist/store_server.h"
#include "lockstep/dist/tcp_store.h"

namespace lockstep::dist {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int free_port() { return Listener("127.0.0.1", 0).port(); }

Environment member(int rank, int world, int port) {
  Environment e;
  e.rank = e.local_rank = rank;
  e.world_size = e.local_world_size = world;
  e.master_port = port;
  e.launched = true;
  return e;
}

// "" or the exception's text.
std::string outcome(const Environment& e, Duration timeout = seconds(20)) {
  try {
    open_store(e, timeout);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(OpenStore, AWorldOfOneNeedsNoPort) {
  auto store = open_store(Environment{}, seconds(1));
  store->set("k", "v");
  EXPECT_EQ(store->get("k"), "v");
}

TEST(OpenStore, FourRanksMeet) {
  const int port = free_port();
  std::vector<std::future<std::string>> ranks;
  for (int rank = 3; rank >= 0; --rank) {
    ranks.push_back(std::async(std::launch::async, [=] {
      auto store = open_store(member(rank, 4, port), seconds(20));
      store->add("sum", rank);
      store->add("done", 1);
      // Rank 0 serves: it stays until all have what they came for.
      while (store->add("done", 0) < 4) std::this_thread::sleep_for(milliseconds(1));
      const std::string sum = store->get("sum");
      store->add("left", 1);
      while (rank == 0 && store->add("left", 0) < 4) std::this_thread::sleep_for(milliseconds(1));
      return sum;
    }));
  }
  for (auto& rank : ranks) EXPECT_EQ(rank.get(), "6");
}

// Two workers that both take themselves for rank 0 (pytorch/pytorch#85604, torchtune#392).
TEST(OpenStore, RankZeroClaimedTwiceIsSaidOnBothSides) {
  const int port = free_port();
  auto first = std::async(std::launch::async, [=] { return outcome(member(0, 2, port)); });
  std::this_thread::sleep_for(milliseconds(60));
  const auto start = std::chrono::steady_clock::now();
  const std::string second = outcome(member(0, 2, port));
  EXPECT_NE(second.find("rank 0 claimed twice"), std::string::npos) << second;
  EXPECT_NE(first.get().find("rank 0 claimed twice"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(2));
}

TEST(OpenStore, AnyRankClaimedTwiceUnderALauncher) {
  StoreServer server("127.0.0.1", 0);
  Environment e = member(1, 3, server.port());
  e.store_hosted = true;
  auto first = std::async(std::launch::async, [=] { return outcome(e); });
  std::this_thread::sleep_for(milliseconds(40));
  EXPECT_NE(outcome(e).find("rank 1 claimed twice"), std::string::npos);
  EXPECT_NE(first.get().find("rank 1 claimed twice"), std::string::npos);
}

TEST(OpenStore, AStrangerOnThePortIsNamed) {
  Listener stranger("127.0.0.1", 0);
  const auto start = std::chrono::steady_clock::now();
  const std::string text = outcome(member(0, 2, stranger.port()));
  EXPECT_NE(text.find(std::to_string(stranger.port())), std::string::npos) << text;
  EXPECT_NE(text.find("in use"), std::string::npos) << text;
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(2));
}

TEST(OpenStore, AMissingPortIsAnError) {
  EXPECT_NE(outcome(member(0, 2, 0)).find("MASTER_PORT"), std::string::npos);
}

TEST(OpenStore, WorldSizesMustAgree) {
  StoreServer server("127.0.0.1", 0);
  Environment one = member(0, 2, server.port());
  Environment two = member(1, 3, server.port());
  one.store_hosted = two.store_hosted = true;
  auto first = std::async(std::launch::async, [=] { return outcome(one); });
  std::this_thread::sleep_for(milliseconds(40));
  const std::string second = outcome(two);
  EXPECT_NE(second.find("world size"), std::string::npos) << second;
  EXPECT_NE(first.get().find("world size"), std::string::npos);
}

TEST(OpenStore, AbsentRanksAreNamedAtTheDeadline) {
  StoreServer server("127.0.0.1", 0);
  Environment e = member(2, 4, server.port());
  e.store_hosted = true;
  const std::string text = outcome(e, milliseconds(80));
  EXPECT_NE(text.find("[0, 1, 3]"), std::string::npos) << text;
}

TEST(OpenStore, ARestartDoesNotSeeTheFirstAttemptsKeys) {
  StoreServer server("127.0.0.1", 0);
  Environment e = member(0, 1, server.port());
  e.store_hosted = true;
  open_store(e, seconds(5))->set("k", "old");
  e.restart_count = 1;
  EXPECT_FALSE(open_store(e, seconds(5))->check("k"));
}

TEST(JoinWorld, ALateDoubleIsRefusedThoughTheWorldIsComplete) {
  LocalStore store;
  std::thread other([&] { join_world(store, 1, 2, "b", seconds(20)); });
  join_world(store, 0, 2, "a", seconds(20));
  other.join();
  try {
    join_world(store, 0, 2, "c", seconds(5));
    FAIL() << "joined a second time";
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), "rank 0 claimed twice: by a and by c");
  }
}

TEST(JoinWorld, RanksOutsideTheWorldAreRefused) {
  LocalStore store;
  EXPECT_THROW(join_world(store, 2, 2, "x", seconds(1)), Error);
  EXPECT_THROW(join_world(store, -1, 2, "x", seconds(1)), Error);
}

}  // namespace
}  // namespace lockstep::dist
