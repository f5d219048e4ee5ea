// Argument checks. For source files only: public headers do not include this one, so that
// embedders need no fmt.
#pragma once

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <utility>

#include "lockstep/core/dtype.h"
#include "lockstep/core/error.h"
#include "lockstep/core/shape.h"

template <>
struct fmt::formatter<lockstep::Shape> : fmt::formatter<std::string_view> {
  auto format(const lockstep::Shape& shape, fmt::format_context& ctx) const {
    return fmt::formatter<std::string_view>::format(shape.str(), ctx);
  }
};

template <>
struct fmt::formatter<lockstep::DType> : fmt::formatter<std::string_view> {
  auto format(lockstep::DType dtype, fmt::format_context& ctx) const {
    return fmt::formatter<std::string_view>::format(lockstep::dtype_name(dtype), ctx);
  }
};

// Throws lockstep::Error with the formatted message unless the condition holds.
#define LOCKSTEP_CHECK(condition, ...)                     \
  do {                                                     \
    if (!(condition)) [[unlikely]]                         \
      throw ::lockstep::Error(::fmt::format(__VA_ARGS__)); \
  } while (false)

// The same with the exception's type as first argument.
#define LOCKSTEP_CHECK_AS(ErrorType, condition, ...) \
  do {                                               \
    if (!(condition)) [[unlikely]]                   \
      throw ErrorType(::fmt::format(__VA_ARGS__));   \
  } while (false)
