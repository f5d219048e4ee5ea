// The serving end of the TCP store: one thread, all connections, no waiting on any single one.
#pragma once

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
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  int port() const { return listener_.port(); }
  const std::string& address() const { return listener_.address(); }

 private:
  Listener listener_;
  std::string token_;
  FileDescriptor wake_;  // an eventfd: readable once the server shall end
  std::thread thread_;
};

}  // namespace lockstep::dist
