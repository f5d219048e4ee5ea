// Argument checks. For source files only: public headers do not include this one, so that
// embedders need no fmt.
#pragma once

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <utility>

#include "lockstep/core/dtype.h"
#include "lockstep/core/error.h"
#include "lockstep/core/shape.h"

// Neither takes a format specification.
template <>
struct fmt::formatter<lockstep::Shape> {
  constexpr auto parse(fmt::format_parse_context& ctx) { return ctx.begin(); }
  auto format(const lockstep::Shape& shape, fmt::format_context& ctx) const {
    return fmt::format_to(ctx.out(), "{}", shape.str());
  }
};

template <>
struct fmt::formatter<lockstep::DType> {
  constexpr auto parse(fmt::format_parse_context& ctx) { return ctx.begin(); }
  auto format(lockstep::DType dtype, fmt::format_context& ctx) const {
    return fmt::format_to(ctx.out(), "{}", lockstep::dtype_name(dtype));
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
