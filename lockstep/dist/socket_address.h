// An IPv4 or IPv6 address with a port, and where names become addresses.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

namespace lockstep::dist {

// strerror, safe in threads.
std::string error_text(int error);

class SocketAddress {
 public:
  static constexpr socklen_t kCapacity = sizeof(sockaddr_storage);

  SocketAddress() = default;
  SocketAddress(const sockaddr* address, socklen_t size);

  static SocketAddress any(int port);                               // IPv4, all interfaces
  static SocketAddress numeric(const std::string& host, int port);  // Error if not an address
  static SocketAddress local(int fd);                               // what the socket is bound to

  // The name's addresses, IPv4 first. A name that does not exist is an Error; if the name server
  // can't answer now, the list is empty and `why` says so.
  static std::vector<SocketAddress> lookup(const std::string& host, int port, std::string& why);

  sockaddr* data() { return reinterpret_cast<sockaddr*>(&storage_); }
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const;
  int family() const { return storage_.ss_family; }
  int port() const;
  std::string host() const;  // numeric
  std::string str() const;   // host:port, [host]:port for IPv6

  friend bool operator==(const SocketAddress& a, const SocketAddress& b) {
    return a.family() == b.family() && a.port() == b.port() && a.host() == b.host();
  }

 private:
  sockaddr_storage storage_{};
};

}  // namespace lockstep::dist
