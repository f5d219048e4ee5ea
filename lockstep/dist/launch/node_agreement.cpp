#include "lockstep/dist/launch/node_agreement.h"

#include <charconv>
#include <utility>
#include <vector>

#include "lockstep/core/check.h"
#include "lockstep/dist/socket.h"

namespace lockstep::dist {
namespace {

std::string node_key(const char* what, int round, int node) {
  return fmt::format("launch/{}/{}/{}", what, round, node);
}

std::string encode_failure(const RoundFailure& f) {
  return fmt::format("{} {} {}", f.exit_code, f.may_restart ? 1 : 0, f.cause);
}

RoundFailure decode_failure(const std::string& text) {
  RoundFailure f;
  const std::size_t space = text.find(' ');
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), f.exit_code);
  LOCKSTEP_CHECK(error == std::errc() && space != std::string::npos && space + 3 <= text.size(),
                 "launcher: '{}' is no failure report", text);
  f.may_restart = text[space + 1] == '1';
  f.cause = text.substr(space + 3);
  return f;
}

RoundFailure store_lost() { return {1, false, "the launcher of node 0 has gone"}; }

}  // namespace

NodeAgreement::NodeAgreement(std::shared_ptr<Store> store, int nnodes, int node_rank,
                             Duration timeout)
    : store_(nnodes > 1 ? std::move(store) : nullptr),
      nnodes_(nnodes),
      node_rank_(node_rank),
      timeout_(timeout) {}

std::string NodeAgreement::agree_job_id(const std::string& mine) {
  if (!store_) return mine;
  if (node_rank_ == 0) store_->set("launch/job", mine);
  return store_->get("launch/job", timeout_);
}

void NodeAgreement::begin(int round, int nproc_per_node, int max_restarts) {
  if (!store_) return;
  const std::string mine = fmt::format("--nnodes {} --nproc-per-node {} --max-restarts {}", nnodes_,
                                       nproc_per_node, max_restarts);
  const std::string agreed = store_->compare_set("launch/figures", "", mine);
  LOCKSTEP_CHECK(agreed == mine, "node {} was started with {}, another with {}", node_rank_, mine,
                 agreed);
  const std::int64_t claims = store_->add(node_key("here", round, node_rank_), 1);
  LOCKSTEP_CHECK(claims == 1, "node rank {} claimed twice: give every node its own --node-rank",
                 node_rank_);
  std::vector<std::string> keys;
  for (int node = 0; node < nnodes_; ++node) keys.push_back(node_key("here", round, node));
  try {
    store_->wait(keys, timeout_);
  } catch (const TimeoutError&) {
    std::vector<int> missing;
    for (int node = 0; node < nnodes_; ++node) {
      if (!store_->check(keys[static_cast<std::size_t>(node)])) missing.push_back(node);
    }
    throw TimeoutError(
        fmt::format("the launchers of nodes {} did not join within {} s", missing,
                    std::chrono::duration_cast<std::chrono::seconds>(timeout_).count()));
  }
}

RoundFailure NodeAgreement::report(int round, const RoundFailure& failure) {
  if (!store_ || lost_) return failure;
  try {
    return decode_failure(
        store_->compare_set(fmt::format("launch/failed/{}", round), "", encode_failure(failure)));
  } catch (const CommError&) {
    lost_ = true;
    return failure;
  }
}

std::optional<RoundFailure> NodeAgreement::failure(int round) {
  if (!store_) return std::nullopt;
  if (lost_) return store_lost();
  try {
    const std::string key = fmt::format("launch/failed/{}", round);
    if (!store_->check(key)) return std::nullopt;
    return decode_failure(store_->get(key, timeout_));
  } catch (const CommError&) {
    lost_ = true;
    return store_lost();
  }
}

void NodeAgreement::succeed(int round) {
  if (!store_ || lost_) return;
  try {
    store_->add(fmt::format("launch/succeeded/{}", round), 1);
  } catch (const CommError&) {
    lost_ = true;
  }
}

bool NodeAgreement::all_succeeded(int round) {
  if (!store_) return true;
  if (lost_) return false;
  try {
    return store_->add(fmt::format("launch/succeeded/{}", round), 0) == nnodes_;
  } catch (const CommError&) {
    lost_ = true;
    return false;
  }
}

void NodeAgreement::show_life() {
  if (!store_ || lost_ || node_rank_ == 0) return;
  try {
    store_->add("launch/life", 1);
  } catch (const CommError&) {
    lost_ = true;
  }
}

void NodeAgreement::leave(Duration patience) {
  if (!store_ || lost_) return;
  try {
    std::int64_t left = store_->add("launch/left", 1);
    if (node_rank_ != 0) return;
    std::int64_t life = -1;
    TimePoint give_up = deadline_after(patience);
    while (left < nnodes_ && std::chrono::steady_clock::now() < give_up) {
      poll_until(-1, 0, deadline_after(std::chrono::milliseconds(20)));
      left = store_->add("launch/left", 0);
      const std::int64_t signs = store_->add("launch/life", 0);
      if (std::exchange(life, signs) != signs) give_up = deadline_after(patience);
    }
  } catch (const CommError&) {
    lost_ = true;
  }
}

}  // namespace lockstep::dist
