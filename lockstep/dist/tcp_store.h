// The store over TCP: one process serves, all others (and it itself) are clients.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "lockstep/dist/socket.h"
#include "lockstep/dist/store.h"

namespace lockstep::dist {

class StoreServer;
struct StoreMessage;

struct TcpStoreOptions {
  std::string host = "127.0.0.1";
  int port = 0;           // 0: any free port; for the server only
  bool serve = false;     // host the table in a thread of this process
  std::string token;      // of the job; server and clients must agree
  std::string interface;  // clients leave from here; "": the kernel chooses
  int port_span = 1;      // ports tried from `port` on: clients take the one that serves the token
  Duration linger{0};     // the server's destructor leaves the clients so long to finish
  Duration timeout = kDefaultStoreTimeout;  // to connect, and for an operation that does not wait
};

// Any number of threads may call: an operation that waits does not hold up the others, each has a
// connection of its own. A lost server is CommError, in waiting operations at once.
class TcpStore final : public Store {
 public:
  // A server: binds first, or throws PortInUseError. A client: tries until someone listens, at most
  // `timeout`.
  explicit TcpStore(TcpStoreOptions options);
  ~TcpStore() override;

  int port() const { return options_.port; }
  const std::string& host() const { return options_.host; }

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
  Socket open(int port, TimePoint deadline, bool retry) const;
  void find_server(TimePoint deadline);
  StoreMessage call(const StoreMessage& request, Duration timeout);
  std::string missing_of(std::span<const std::string> keys);

  TcpStoreOptions options_;
  std::unique_ptr<StoreServer> server_;
  std::mutex mutex_;
  std::vector<Socket> idle_;
};

}  // namespace lockstep::dist
