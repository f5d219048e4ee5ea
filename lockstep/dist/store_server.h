// The serving end of the TCP store: one thread, all connections, no waiting on any single one.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "lockstep/dist/socket.h"

namespace lockstep::dist {

// Serves from construction to destruction. A connection that speaks another protocol, or that
// carries another job's token, is refused with a reason and closed.
class StoreServer {
 public:
  // Address and port as Listener takes them; PortInUseError if the port is taken.
  StoreServer(const std::string& address, int port, std::string token = "");
  ~StoreServer();  // ends at once
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // Ends once all clients have left, or at the deadline; blocks until then.
  void drain(TimePoint deadline);

  int port() const { return listener_.port(); }
  const std::string& address() const { return listener_.address(); }

 private:
  Listener listener_;
  std::string token_;
  FileDescriptor wake_;  // an eventfd: readable once the server shall end
  std::atomic<TimePoint> end_at_ = TimePoint::max();  // set before wake_ is
  std::thread thread_;
};

}  // namespace lockstep::dist
