// The exceptions that Lockstep throws. Every message says what was given and what was wanted.
#pragma once

#include <stdexcept>
#include <string>

namespace lockstep {

// A mistake of the caller, a damaged file, a failed allocation: anything that trying again as it
// is will not mend.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what) : std::runtime_error(what) {}
};

// The process asked for more memory than there is; names the request and the peak.
class OutOfMemoryError : public Error {
 public:
  using Error::Error;
};

// A peer died, closed its connection or disagrees. The group is unusable; a new one may work.
class CommError : public Error {
 public:
  using Error::Error;
};

// A wait reached its deadline. Names what was waited for and for how long.
class TimeoutError : public CommError {
 public:
  using CommError::CommError;
};

}  // namespace lockstep
