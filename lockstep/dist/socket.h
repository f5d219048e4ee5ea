// TCP sockets with a deadline on every wait. Interrupted system calls go on where they stopped.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/dist/store.h"

namespace lockstep::dist {

using TimePoint = std::chrono::steady_clock::time_point;

// Now plus the timeout; a timeout too long for the clock counts as its end.
TimePoint deadline_after(Duration timeout);

// Owns a file descriptor; -1: none.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~FileDescriptor() { reset(); }

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) noexcept;
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// poll(2) on one descriptor; false once the deadline has passed.
bool poll_until(int fd, short events, TimePoint deadline);

// A connected stream; non-blocking underneath, closed on exec, no SIGPIPE, no Nagle delay.
class Socket {
 public:
  Socket() = default;
  // `peer` names the other end in errors.
  Socket(FileDescriptor fd, std::string peer) : fd_(std::move(fd)), peer_(std::move(peer)) {}

  // All bytes or an exception: CommError when the peer has gone, TimeoutError at the deadline.
  void send_all(std::span<const std::byte> bytes, TimePoint deadline);
  void recv_all(std::span<std::byte> bytes, TimePoint deadline);

  // What is there now, without waiting: the number of bytes moved, 0 if it would block. CommError
  // when the peer has gone.
  std::size_t send_some(std::span<const std::byte> bytes);
  std::size_t recv_some(std::span<std::byte> bytes);

  // Ends both directions: a thread of ours that waits in recv_all gets its CommError at once.
  void shutdown() noexcept;

  int fd() const { return fd_.get(); }
  const std::string& peer() const { return peer_; }
  std::string local_address() const;  // without the port
  explicit operator bool() const { return static_cast<bool>(fd_); }

 private:
  FileDescriptor fd_;
  std::string peer_;
};

// The numeric address of a network device ("lo"), a host name or an address ("10.0.0.2"). An
// unknown one is an Error that names it.
std::string resolve_interface(const std::string& name);

class Listener {
 public:
  // Binds to the address (an interface, host name or address; "": all) and port (0: any free one).
  // A port in use is PortInUseError, any other failure an Error; both name address and port.
  Listener(const std::string& address, int port);

  // CommError if the listener was shut down, TimeoutError at the deadline.
  Socket accept(TimePoint deadline);

  int port() const { return port_; }
  const std::string& address() const { return address_; }  // as bound; "0.0.0.0" or "::" for all
  int fd() const { return fd_.get(); }

 private:
  FileDescriptor fd_;
  std::string address_;
  int port_ = 0;
};

class PortInUseError : public Error {
 public:
  using Error::Error;
};

struct ConnectOptions {
  std::string interface;      // leave from this interface or address; "": the kernel chooses
  bool retry_refused = true;  // nobody listens yet: try again until the deadline
};

// A host name that does not exist is an Error, the deadline a TimeoutError, a refusal without
// retry a CommError; all name host and port.
Socket connect_to(const std::string& host, int port, TimePoint deadline,
                  const ConnectOptions& options = {});

}  // namespace lockstep::dist
