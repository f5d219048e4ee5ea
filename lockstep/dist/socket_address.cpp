#include "lockstep/dist/socket_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "lockstep/core/check.h"
#include "lockstep/dist/socket.h"

namespace lockstep::dist {
namespace {

struct AddrInfoDeleter {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using AddrInfoList = std::unique_ptr<addrinfo, AddrInfoDeleter>;

// 0 or an EAI_ code.
int query(const std::string& host, int port, int flags, AddrInfoList& list) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* raw = nullptr;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &raw);
  list.reset(code == 0 ? raw : nullptr);
  return code;
}

}  // namespace

std::string error_text(int error) { return std::generic_category().message(error); }

SocketAddress::SocketAddress(const sockaddr* address, socklen_t size) {
  std::memcpy(&storage_, address, std::min<std::size_t>(size, sizeof storage_));
}

SocketAddress SocketAddress::any(int port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_ANY);
  in.sin_port = htons(static_cast<std::uint16_t>(port));
  return SocketAddress(reinterpret_cast<const sockaddr*>(&in), sizeof in);
}

SocketAddress SocketAddress::numeric(const std::string& host, int port) {
  AddrInfoList list;
  const int code = query(host, port, AI_NUMERICHOST, list);
  LOCKSTEP_CHECK(code == 0, "'{}' is not an address: {}", host, ::gai_strerror(code));
  return SocketAddress(list->ai_addr, list->ai_addrlen);
}

SocketAddress SocketAddress::local(int fd) {
  SocketAddress address;
  socklen_t size = kCapacity;
  LOCKSTEP_CHECK(::getsockname(fd, address.data(), &size) == 0, "getsockname: {}",
                 error_text(errno));
  return address;
}

std::vector<SocketAddress> SocketAddress::lookup(const std::string& host, int port,
                                                 std::string& why) {
  AddrInfoList list;
  const int code = query(host, port, 0, list);
  std::vector<SocketAddress> found;
  if (code == EAI_AGAIN || code == EAI_SYSTEM) {
    why = fmt::format("name '{}': {}", host, ::gai_strerror(code));
    return found;
  }
  LOCKSTEP_CHECK(code == 0, "unknown host '{}': {}", host, ::gai_strerror(code));
  for (const addrinfo* it = list.get(); it != nullptr; it = it->ai_next) {
    found.emplace_back(it->ai_addr, it->ai_addrlen);
  }
  std::stable_partition(found.begin(), found.end(),
                        [](const SocketAddress& a) { return a.family() == AF_INET; });
  return found;
}

socklen_t SocketAddress::size() const {
  return family() == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

int SocketAddress::port() const {
  if (family() == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
}

std::string SocketAddress::host() const {
  char text[NI_MAXHOST] = "";
  const int code = ::getnameinfo(data(), size(), text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return code == 0 ? text : fmt::format("address family {}", family());
}

std::string SocketAddress::str() const {
  if (family() == AF_INET6) return fmt::format("[{}]:{}", host(), port());
  return fmt::format("{}:{}", host(), port());
}

std::string resolve_interface(const std::string& name) {
  ifaddrs* raw = nullptr;
  LOCKSTEP_CHECK(::getifaddrs(&raw) == 0, "interface '{}': {}", name, error_text(errno));
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(raw, ::freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* it = list.get(); it != nullptr; it = it->ifa_next) {
      if (it->ifa_addr == nullptr || it->ifa_addr->sa_family != family || name != it->ifa_name) {
        continue;
      }
      const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      return SocketAddress(it->ifa_addr, size).host();
    }
  }
  AddrInfoList resolved;
  const int code = query(name, 0, 0, resolved);
  LOCKSTEP_CHECK(code == 0, "'{}' is no network interface, host name or address of this host ({})",
                 name, ::gai_strerror(code));
  std::string first;
  for (const addrinfo* it = resolved.get(); it != nullptr; it = it->ai_next) {
    const std::string host = SocketAddress(it->ai_addr, it->ai_addrlen).host();
    if (it->ai_family == AF_INET) return host;
    if (first.empty()) first = host;
  }
  return first;
}

}  // namespace lockstep::dist
