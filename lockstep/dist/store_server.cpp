#include "lockstep/dist/store_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/core/check.h"
#include "lockstep/core/log.h"
#include "lockstep/dist/key_table.h"
#include "lockstep/dist/socket_address.h"
#include "lockstep/dist/store_protocol.h"

namespace lockstep::dist {
namespace {

struct Client {
  Socket socket;
  std::vector<std::byte> in;
  std::vector<std::byte> out;
  std::size_t sent = 0;  // of out
  bool greeted = false;
  bool closing = false;                 // close once out is sent
  std::optional<StoreMessage> waiting;  // a get or wait whose keys are not all there
};

StoreMessage ok(std::int64_t number) { return {StoreOp::kOk, number, {}}; }
StoreMessage ok(std::string value) { return {StoreOp::kOk, 0, {std::move(value)}}; }

std::size_t wanted_fields(const StoreMessage& request) {
  switch (request.op) {
    case StoreOp::kHello:
    case StoreOp::kSet:
      return 2;
    case StoreOp::kCompareSet:
      return 3;
    case StoreOp::kCount:
      return 0;
    case StoreOp::kWait:
      return request.fields.size();
    default:
      return 1;
  }
}

// The state behind the thread; lives on its stack.
class Session {
 public:
  Session(Listener& listener, const std::string& token, int wake,
          const std::atomic<TimePoint>& end_at)
      : listener_(listener), token_(token), wake_(wake), end_at_(end_at) {}

  void serve() {
    std::vector<pollfd> polled;
    while (true) {
      const TimePoint end_at = end_at_;
      const bool ending = end_at != TimePoint::max();
      if (ending && (clients_.empty() || std::chrono::steady_clock::now() >= end_at)) return;
      polled.assign(
          {{ending ? -1 : wake_, POLLIN, 0}, {accepting() ? listener_.fd() : -1, POLLIN, 0}});
      for (const Client& client : clients_) {
        const bool unsent = client.sent < client.out.size();
        polled.push_back(
            {client.socket.fd(), static_cast<short>(POLLIN | (unsent ? POLLOUT : 0)), 0});
      }
      const int timeout = ending ? 5 : accepting() ? -1 : 100;
      if (::poll(polled.data(), polled.size(), timeout) < 0) {
        LOCKSTEP_CHECK(errno == EINTR || errno == EAGAIN, "store server: poll: {}",
                       error_text(errno));
        continue;
      }
      std::size_t slot = 2;
      for (auto it = clients_.begin(); it != clients_.end() && slot < polled.size(); ++slot) {
        it = polled[slot].revents == 0 || advance(*it) ? std::next(it) : clients_.erase(it);
      }
      if (polled[1].revents != 0) accept();
    }
  }

 private:
  // With no descriptor left the listener would spin; it rests a moment instead.
  bool accepting() const { return std::chrono::steady_clock::now() >= rest_until_; }

  void accept() {
    try {
      clients_.emplace_back().socket = listener_.accept(std::chrono::steady_clock::now());
    } catch (const CommError& e) {
      clients_.pop_back();
      rest_until_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
      log(LogLevel::kWarning, fmt::format("store server: {}", e.what()));
    }
  }

  // Moves what can be moved without waiting; false when the client is done with.
  bool advance(Client& client) {
    try {
      receive(client);
      return flush(client);
    } catch (const std::exception&) {
      return false;  // it has gone, which is no error of the server's
    }
  }

  void receive(Client& client) {
    std::array<std::byte, 65536> chunk;
    // A bounded number of rounds, so that one busy client does not starve the others.
    for (int round = 0; round < 16; ++round) {
      const std::size_t n = client.socket.recv_some(chunk);
      if (n == 0) return;
      client.in.insert(client.in.end(), chunk.begin(), chunk.begin() + static_cast<long>(n));
      while (!client.closing && take_request(client)) {
      }
    }
  }

  bool take_request(Client& client) {
    if (client.in.size() < kStoreHeaderBytes) return false;
    const std::uint64_t length = decode_length(client.in);
    if (length > (client.greeted ? kMaxStoreBody : kMaxHelloBody)) throw CommError("a stranger");
    if (client.in.size() - kStoreHeaderBytes < length) return false;
    const std::span body = std::span(client.in).subspan(kStoreHeaderBytes, length);
    std::optional<StoreMessage> request = decode_body(body);
    if (!request || request->fields.size() != wanted_fields(*request))
      throw CommError("a stranger");
    client.in.erase(client.in.begin(),
                    client.in.begin() + static_cast<long>(kStoreHeaderBytes + length));
    client.waiting.reset();
    handle(client, std::move(*request));
    return true;
  }

  void handle(Client& client, StoreMessage request) {
    if (!client.greeted) return greet(client, request);
    try {
      std::optional<StoreMessage> reply = answer(request);
      if (reply) {
        put(client, *reply);
      } else {
        client.waiting = std::move(request);
      }
    } catch (const Error& e) {
      put(client, {StoreOp::kError, 0, {e.what()}});
    }
    const bool wrote = request.op == StoreOp::kSet || request.op == StoreOp::kAdd ||
                       request.op == StoreOp::kCompareSet;
    if (wrote) wake_waiting();
  }

  void greet(Client& client, const StoreMessage& request) {
    if (request.op != StoreOp::kHello || request.fields[0] != kStoreMagic) {
      throw CommError("a stranger");
    }
    client.greeted = request.fields[1] == token_;
    client.closing = !client.greeted;
    put(client, client.greeted
                    ? ok(0)
                    : StoreMessage{StoreOp::kError, 0, {"this store serves another job"}});
  }

  // Nothing while a key that the request waits for is missing.
  std::optional<StoreMessage> answer(const StoreMessage& request) {
    const auto& fields = request.fields;
    switch (request.op) {
      case StoreOp::kSet:
        table_.set(fields[0], fields[1]);
        return ok(0);
      case StoreOp::kAdd:
        return ok(table_.add(fields[0], request.number));
      case StoreOp::kCompareSet:
        return ok(table_.compare_set(fields[0], fields[1], fields[2]));
      case StoreOp::kCheck:
        return ok(table_.contains(fields[0]) ? 1 : 0);
      case StoreOp::kErase:
        return ok(table_.erase(fields[0]) ? 1 : 0);
      case StoreOp::kCount:
        return ok(table_.size());
      case StoreOp::kGet:
        if (auto value = table_.find(fields[0])) return ok(std::move(*value));
        return std::nullopt;
      case StoreOp::kWait:
        if (std::ranges::all_of(fields, [&](const auto& key) { return table_.contains(key); })) {
          return ok(0);
        }
        return std::nullopt;
      default:
        throw CommError("store: a request that is none");
    }
  }

  void put(Client& client, const StoreMessage& reply) {
    const std::vector<std::byte> frame = encode(reply);
    client.out.insert(client.out.end(), frame.begin(), frame.end());
  }

  void wake_waiting() {
    for (Client& client : clients_) {
      if (!client.waiting) continue;
      std::optional<StoreMessage> reply = answer(*client.waiting);
      if (!reply) continue;
      client.waiting.reset();
      put(client, *reply);
      try {
        flush(client);
      } catch (const std::exception&) {
        client.closing = true;  // poll reports the broken connection next
      }
    }
  }

  bool flush(Client& client) {
    while (client.sent < client.out.size()) {
      const std::size_t n = client.socket.send_some(std::span(client.out).subspan(client.sent));
      if (n == 0) return true;
      client.sent += n;
    }
    client.out.clear();
    client.sent = 0;
    return !client.closing;
  }

  Listener& listener_;
  const std::string& token_;
  int wake_;
  const std::atomic<TimePoint>& end_at_;
  KeyTable table_;
  std::list<Client> clients_;
  TimePoint rest_until_{};
};

}  // namespace

StoreServer::StoreServer(const std::string& address, int port, std::string token)
    : listener_(address, port),
      token_(std::move(token)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  LOCKSTEP_CHECK(wake_, "store server: eventfd: {}", error_text(errno));
  thread_ = std::thread([this] {
    try {
      Session(listener_, token_, wake_.get(), end_at_).serve();
    } catch (const std::exception& e) {
      log(LogLevel::kError, fmt::format("store server ended: {}", e.what()));
    }
  });
}

StoreServer::~StoreServer() { drain(TimePoint::min()); }

void StoreServer::drain(TimePoint deadline) {
  if (!thread_.joinable()) return;
  // The largest point in time means "not ending".
  end_at_ = std::min(deadline, TimePoint::max() - TimePoint::duration(1));
  const std::uint64_t one = 1;
  while (::write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
}

}  // namespace lockstep::dist
