// Ranks as threads, for tests that hold for every transport.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/dist/local_store.h"
#include "lockstep/dist/process_group.h"

namespace lockstep::testing {

// Runs body(group) on `size` threads, each with a group of this kind, and returns what each threw
// (null for nothing). A shm group maps its memory once per thread, as it does once per process.
inline std::vector<std::exception_ptr> try_ranks(
    const std::string& kind, int size, const std::function<void(dist::ProcessGroup&)>& body,
    const dist::ProcessGroupOptions& options = {}) {
  auto store = std::make_shared<dist::LocalStore>();
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      std::shared_ptr<dist::ProcessGroup> group;
      try {
        group = dist::make_process_group(kind, store, rank, size, options);
        body(*group);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
        if (group) group->abort(error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// The same, rethrowing the error of the lowest rank.
inline void run_ranks(const std::string& kind, int size,
                      const std::function<void(dist::ProcessGroup&)>& body,
                      const dist::ProcessGroupOptions& options = {}) {
  for (const std::exception_ptr& error : try_ranks(kind, size, body, options))
    if (error) std::rethrow_exception(error);
}

// The message of an error, "" for none.
inline std::string message_of(const std::exception_ptr& error) {
  if (!error) return "";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

template <class T>
bool is_error(const std::exception_ptr& error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const T&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace lockstep::testing
