#include "lockstep/core/device.h"

#include <charconv>

#include "lockstep/core/check.h"
#include "lockstep/core/config.h"

namespace lockstep {

Device parse_device(std::string_view text) {
  if (text == "cpu") return kCpu;
  const std::string_view prefix = "cuda";
  int index = 0;
  bool good = text.starts_with(prefix);
  if (good && text.size() > prefix.size()) {
    const std::string_view number = text.substr(prefix.size());
    const auto [end, error] =
        std::from_chars(number.data() + 1, number.data() + number.size(), index);
    good = number[0] == ':' && number.size() > 1 && error == std::errc() &&
           end == number.data() + number.size() && index >= 0 && index < 128;
  }
  LOCKSTEP_CHECK(good, "device: expected \"cpu\", \"cuda\" or \"cuda:<index>\" but got \"{}\"",
                 text);
  const Device device = cuda_device(index);
  require_device(device, "device");
  return device;
}

void require_device(Device device, std::string_view op) {
  if (device.is_cpu()) {
    LOCKSTEP_CHECK(device.index == 0, "{}: there is no device cpu with index {}", op,
                   static_cast<int>(device.index));
    return;
  }
  LOCKSTEP_CHECK(kHasCuda, "{}: {} was asked for, but this build of Lockstep has no CUDA", op,
                 device.str());
  const int count = cuda_device_count();
  LOCKSTEP_CHECK(count > 0, "{}: {} was asked for, but there is no CUDA driver or device here", op,
                 device.str());
  LOCKSTEP_CHECK(device.index >= 0 && device.index < count,
                 "{}: {} was asked for, but there are {} CUDA devices (0 to {})", op, device.str(),
                 count, count - 1);
}

}  // namespace lockstep
