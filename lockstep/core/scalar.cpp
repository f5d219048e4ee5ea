#include "lockstep/core/scalar.h"

#include "lockstep/core/check.h"

namespace lockstep {

void Scalar::does_not_fit(std::size_t bytes, bool is_signed) const {
  const std::string value = is_integer_ ? fmt::format("{}", integer_) : fmt::format("{}", real_);
  throw Error(fmt::format("item: {} is no value of {} integers of {} bits", value,
                          is_signed ? "signed" : "unsigned", 8 * bytes));
}

}  // namespace lockstep
