// What an exception says.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace lockstep::testing {

// The message of the Exception that `call` throws; "" if it throws none.
template <class Exception, class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.what();
  }
  return "";
}

inline ::testing::AssertionResult holds(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << '"' << text << "\" does not hold \"" << part << '"';
}

}  // namespace lockstep::testing

#define EXPECT_HOLDS(text, part) EXPECT_TRUE(::lockstep::testing::holds(text, part))
