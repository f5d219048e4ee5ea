#include "lockstep/dist/tcp_store.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "lockstep/core/check.h"
#include "lockstep/dist/store_protocol.h"
#include "lockstep/dist/store_server.h"

namespace lockstep::dist {
namespace {

constexpr Duration kLeastRoundTrip = std::chrono::milliseconds(200);

using std::chrono::steady_clock;

// The server on this port is of another job, or no store at all.
class WrongServer : public Error {
 public:
  using Error::Error;
};

StoreMessage exchange(Socket& socket, const StoreMessage& request, TimePoint deadline) {
  socket.send_all(encode(request), deadline);
  std::vector<std::byte> bytes(kStoreHeaderBytes);
  socket.recv_all(bytes, deadline);
  const std::uint64_t length = decode_length(bytes);
  LOCKSTEP_CHECK_AS(CommError, length <= kMaxStoreBody, "{} is no store", socket.peer());
  bytes.resize(length);
  socket.recv_all(bytes, deadline);
  std::optional<StoreMessage> reply = decode_body(bytes);
  LOCKSTEP_CHECK_AS(CommError, reply && (reply->op == StoreOp::kOk || reply->op == StoreOp::kError),
                    "{} is no store", socket.peer());
  return std::move(*reply);
}

// The answer's value; a server of the right protocol always sends one.
std::string value_of(StoreMessage reply) {
  LOCKSTEP_CHECK_AS(CommError, reply.fields.size() == 1, "store: an answer without its value");
  return std::move(reply.fields[0]);
}

}  // namespace

TcpStore::TcpStore(TcpStoreOptions options) : options_(std::move(options)) {
  const TimePoint deadline = deadline_after(options_.timeout);
  if (options_.serve) {
    for (int tried = 0; server_ == nullptr; ++tried) {
      try {
        server_ =
            std::make_unique<StoreServer>(options_.host, options_.port + tried, options_.token);
      } catch (const PortInUseError&) {
        if (tried + 1 >= options_.port_span) throw;
      }
    }
    options_.port = server_->port();
    options_.host = server_->address();
    options_.interface.clear();
  } else {
    find_server(deadline);
  }
}

TcpStore::~TcpStore() {
  idle_.clear();  // our own connections are no reason to stay
  // An exception on its way out must be seen soon: the others can't finish anyway.
  if (server_ && options_.linger.count() > 0 && std::uncaught_exceptions() == 0) {
    server_->drain(deadline_after(options_.linger));
  }
}

Socket TcpStore::open(int port, TimePoint deadline, bool retry) const {
  Socket socket = connect_to(options_.host, port, deadline, {options_.interface, retry});
  std::optional<StoreMessage> reply;
  try {
    reply = exchange(socket, {StoreOp::kHello, 0, {std::string(kStoreMagic), options_.token}},
                     deadline);
  } catch (const TimeoutError&) {
    throw WrongServer(fmt::format("{} accepts but does not answer as a store", socket.peer()));
  } catch (const CommError&) {
    throw WrongServer(fmt::format("{} accepts but does not answer as a store", socket.peer()));
  }
  if (reply->op == StoreOp::kError) {
    throw WrongServer(fmt::format("store at {}: {}", socket.peer(), value_of(std::move(*reply))));
  }
  return socket;
}

void TcpStore::find_server(TimePoint deadline) {
  if (options_.port_span == 1) {
    idle_.push_back(open(options_.port, deadline, true));
    return;
  }
  std::string last;
  while (true) {
    for (int port = options_.port; port < options_.port + options_.port_span; ++port) {
      // A stranger that never answers must not eat the whole time.
      const TimePoint attempt = std::min(deadline, deadline_after(std::chrono::seconds(2)));
      try {
        idle_.push_back(open(port, attempt, false));
        options_.port = port;
        return;
      } catch (const CommError& e) {
        last = e.what();
      } catch (const WrongServer& e) {
        last = e.what();
      }
    }
    const TimePoint next = steady_clock::now() + std::chrono::milliseconds(50);
    LOCKSTEP_CHECK_AS(TimeoutError, next < deadline,
                      "no store of this job on {} ports {}..{} before the deadline; last: {}",
                      options_.host, options_.port, options_.port + options_.port_span - 1, last);
    poll_until(-1, 0, next);
  }
}

StoreMessage TcpStore::call(const StoreMessage& request, Duration timeout) {
  // The way to the server and back takes its time even where nothing has to be waited for.
  const TimePoint deadline = deadline_after(std::max(timeout, kLeastRoundTrip));
  Socket socket;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      socket = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  // A connection whose answer did not come is closed, never used again.
  if (!socket) {
    try {
      socket =
          open(options_.port, std::max(deadline, deadline_after(std::chrono::seconds(1))), false);
    } catch (const WrongServer& e) {
      throw CommError(e.what());
    }
  }
  StoreMessage reply = exchange(socket, request, deadline);
  {
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(socket));
  }
  LOCKSTEP_CHECK(reply.op == StoreOp::kOk, "{}", reply.fields.empty() ? "" : reply.fields[0]);
  return reply;
}

void TcpStore::set(const std::string& key, std::string value) {
  call({StoreOp::kSet, 0, {key, std::move(value)}}, options_.timeout);
}

std::string TcpStore::get(const std::string& key, Duration timeout) {
  try {
    return value_of(call({StoreOp::kGet, 0, {key}}, timeout));
  } catch (const TimeoutError&) {
    throw TimeoutError(fmt::format("store at {}:{}: key '{}' was not set within {} ms",
                                   options_.host, options_.port, key, timeout.count()));
  } catch (const CommError& e) {
    throw CommError(fmt::format("store: while waiting for key '{}': {}", key, e.what()));
  }
}

std::int64_t TcpStore::add(const std::string& key, std::int64_t delta) {
  return call({StoreOp::kAdd, delta, {key}}, options_.timeout).number;
}

std::string TcpStore::compare_set(const std::string& key, const std::string& expected,
                                  std::string desired) {
  return value_of(
      call({StoreOp::kCompareSet, 0, {key, expected, std::move(desired)}}, options_.timeout));
}

bool TcpStore::check(const std::string& key) {
  return call({StoreOp::kCheck, 0, {key}}, options_.timeout).number != 0;
}

void TcpStore::wait(std::span<const std::string> keys, Duration timeout) {
  if (keys.empty()) return;
  try {
    call({StoreOp::kWait, 0, {keys.begin(), keys.end()}}, timeout);
  } catch (const TimeoutError&) {
    throw TimeoutError(fmt::format("store at {}:{}: keys {} were not set within {} ms",
                                   options_.host, options_.port, missing_of(keys),
                                   timeout.count()));
  } catch (const CommError& e) {
    throw CommError(fmt::format("store: while waiting for keys {}: {}",
                                fmt::format("{}", fmt::join(keys, ", ")), e.what()));
  }
}

// Which of the keys are still absent; all of them if the server no longer says.
std::string TcpStore::missing_of(std::span<const std::string> keys) {
  std::vector<std::string> missing;
  try {
    for (const std::string& key : keys) {
      if (call({StoreOp::kCheck, 0, {key}}, std::chrono::seconds(1)).number == 0) {
        missing.push_back(key);
      }
    }
  } catch (const Error&) {
    missing.assign(keys.begin(), keys.end());
  }
  return fmt::format("{}", missing);
}

bool TcpStore::erase(const std::string& key) {
  return call({StoreOp::kErase, 0, {key}}, options_.timeout).number != 0;
}

std::int64_t TcpStore::num_keys() {
  return call({StoreOp::kCount, 0, {}}, options_.timeout).number;
}

}  // namespace lockstep::dist
