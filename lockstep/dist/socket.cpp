#include "lockstep/dist/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>

#include "lockstep/core/check.h"
#include "lockstep/dist/socket_address.h"

namespace lockstep::dist {
namespace {

using std::chrono::steady_clock;

bool gone(int error) { return error == ECONNRESET || error == EPIPE || error == ENOTCONN; }

void set_option(int fd, int level, int option) {
  const int on = 1;
  ::setsockopt(fd, level, option, &on, sizeof on);
}

}  // namespace

TimePoint deadline_after(Duration timeout) {
  const TimePoint now = steady_clock::now();
  if (timeout > std::chrono::duration_cast<Duration>(TimePoint::max() - now)) {
    return TimePoint::max();
  }
  return now + timeout;
}

void FileDescriptor::reset(int fd) noexcept {
  if (fd_ >= 0) ::close(fd_);  // Linux frees the number even on EINTR: never close twice
  fd_ = fd;
}

bool poll_until(int fd, short events, TimePoint deadline) {
  while (true) {
    const auto left = std::chrono::ceil<Duration>(deadline - steady_clock::now()).count();
    const int ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, ms);
    if (ready > 0) return true;
    if (ready == 0 && left <= ms) return false;
    LOCKSTEP_CHECK(ready >= 0 || errno == EINTR || errno == EAGAIN, "poll failed: {}",
                   error_text(errno));
  }
}

std::size_t Socket::send_some(std::span<const std::byte> bytes) {
  while (true) {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    LOCKSTEP_CHECK_AS(CommError, errno == EINTR, "connection to {} {}: {}", peer_,
                      gone(errno) ? "is closed" : "failed while sending", error_text(errno));
  }
}

std::size_t Socket::recv_some(std::span<std::byte> bytes) {
  if (bytes.empty()) return 0;
  while (true) {
    const ssize_t n = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (n > 0) return static_cast<std::size_t>(n);
    LOCKSTEP_CHECK_AS(CommError, n != 0, "connection to {} was closed by the other side", peer_);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    LOCKSTEP_CHECK_AS(CommError, errno == EINTR, "connection to {} {}: {}", peer_,
                      gone(errno) ? "is closed" : "failed while receiving", error_text(errno));
  }
}

void Socket::send_all(std::span<const std::byte> bytes, TimePoint deadline) {
  const std::size_t total = bytes.size();
  while (!bytes.empty()) {
    const std::size_t n = send_some(bytes);
    bytes = bytes.subspan(n);
    if (n > 0 || bytes.empty()) continue;
    LOCKSTEP_CHECK_AS(TimeoutError, poll_until(fd_.get(), POLLOUT, deadline),
                      "sending {} bytes to {}: {} were not taken before the deadline", total, peer_,
                      bytes.size());
  }
}

void Socket::recv_all(std::span<std::byte> bytes, TimePoint deadline) {
  const std::size_t total = bytes.size();
  while (!bytes.empty()) {
    const std::size_t n = recv_some(bytes);
    bytes = bytes.subspan(n);
    if (n > 0 || bytes.empty()) continue;
    LOCKSTEP_CHECK_AS(TimeoutError, poll_until(fd_.get(), POLLIN, deadline),
                      "receiving {} bytes from {}: {} did not come before the deadline", total,
                      peer_, bytes.size());
  }
}

void Socket::shutdown() noexcept {
  if (fd_) ::shutdown(fd_.get(), SHUT_RDWR);
}

std::string Socket::local_address() const { return SocketAddress::local(fd_.get()).host(); }

Listener::Listener(const std::string& address, int port) {
  LOCKSTEP_CHECK(port >= 0 && port <= 65535, "listen on '{}': port {} is not in 0..65535", address,
                 port);
  const SocketAddress where = address.empty()
                                  ? SocketAddress::any(port)
                                  : SocketAddress::numeric(resolve_interface(address), port);
  fd_.reset(::socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  LOCKSTEP_CHECK(fd_, "listen on {}: no socket: {}", where.str(), error_text(errno));
  set_option(fd_.get(), SOL_SOCKET, SO_REUSEADDR);
  const bool listening =
      ::bind(fd_.get(), where.data(), where.size()) == 0 && ::listen(fd_.get(), SOMAXCONN) == 0;
  LOCKSTEP_CHECK_AS(PortInUseError, listening || errno != EADDRINUSE,
                    "port {} of {} is already in use", port, where.host());
  LOCKSTEP_CHECK(listening, "listen on {}: {}", where.str(), error_text(errno));
  const SocketAddress bound = SocketAddress::local(fd_.get());
  address_ = bound.host();
  port_ = bound.port();
}

Socket Listener::accept(TimePoint deadline) {
  while (true) {
    SocketAddress peer;
    socklen_t size = SocketAddress::kCapacity;
    FileDescriptor fd(::accept4(fd_.get(), peer.data(), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY);
      return Socket(std::move(fd), peer.str());
    }
    // A connection that was reset before it was accepted is no concern of the listener's.
    if (errno == EINTR || errno == ECONNABORTED) continue;
    LOCKSTEP_CHECK_AS(CommError, errno == EAGAIN || errno == EWOULDBLOCK,
                      "accept on {}:{} failed: {}", address_, port_, error_text(errno));
    LOCKSTEP_CHECK_AS(TimeoutError, poll_until(fd_.get(), POLLIN, deadline),
                      "nobody connected to {}:{} before the deadline", address_, port_);
  }
}

namespace {

// One attempt at one address: 0 or the errno.
int try_connect(const SocketAddress& to, const ConnectOptions& options, TimePoint deadline,
                FileDescriptor& fd) {
  fd.reset(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  if (!options.interface.empty()) {
    const SocketAddress from = SocketAddress::numeric(resolve_interface(options.interface), 0);
    if (from.family() != to.family()) return EAFNOSUPPORT;
    if (::bind(fd.get(), from.data(), from.size()) != 0) return errno;
  }
  // A connect that a signal interrupts goes on in the background, as one in progress does.
  if (::connect(fd.get(), to.data(), to.size()) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return errno;
    if (!poll_until(fd.get(), POLLOUT, deadline)) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
    if (error != 0) return error;
  }
  // On loopback a free port may connect to itself; that is nobody listening.
  if (SocketAddress::local(fd.get()) == to) return ECONNREFUSED;
  set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY);
  return 0;
}

}  // namespace

Socket connect_to(const std::string& host, int port, TimePoint deadline,
                  const ConnectOptions& options) {
  LOCKSTEP_CHECK(port > 0 && port <= 65535, "connect to {}: port {} is not in 1..65535", host,
                 port);
  auto pause = std::chrono::milliseconds(2);
  std::string last = "no attempt";
  while (true) {
    for (const SocketAddress& address : SocketAddress::lookup(host, port, last)) {
      FileDescriptor fd;
      const int error = try_connect(address, options, deadline, fd);
      if (error == 0) return Socket(std::move(fd), fmt::format("{}:{}", host, port));
      last = error_text(error);
      LOCKSTEP_CHECK(error != EMFILE && error != EACCES && error != EADDRNOTAVAIL,
                     "connect to {}:{}: {}", host, port, last);
    }
    LOCKSTEP_CHECK_AS(CommError, options.retry_refused, "connect to {}:{}: {}", host, port, last);
    LOCKSTEP_CHECK_AS(TimeoutError, steady_clock::now() + pause < deadline,
                      "connect to {}:{}: no success before the deadline; last: {}", host, port,
                      last);
    poll_until(-1, 0, steady_clock::now() + pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(200));
  }
}

}  // namespace lockstep::dist
