#include "bench/machine.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

namespace lockstep::bench {
namespace {

double clock_seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// What follows `name` and a colon in a file of the kernel.
std::string field(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name, 0) != 0) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::int64_t leading_integer(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::string cpu_model() {
  const std::string model = field("/proc/cpuinfo", "model name");
  return model.empty() ? "unknown" : model;
}

int allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : -1;
}

std::string governor() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  std::string name;
  return file >> name ? name : "unreadable";
}

std::string compiler() {
#ifdef __clang__
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

std::string build_flags() { return LOCKSTEP_BENCH_FLAGS; }

std::int64_t peak_resident_bytes() {
  return 1024 * leading_integer(field("/proc/self/status", "VmHWM"));
}

double seconds_since_process_start() {
  std::ifstream file("/proc/self/stat");
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  // The name in parentheses may hold anything; the start time is the 20th field after it.
  std::istringstream rest(all.substr(std::min(all.size(), all.rfind(')') + 1)));
  std::string ticks;
  for (int i = 0; i < 20; ++i) rest >> ticks;
  return clock_seconds(CLOCK_BOOTTIME) -
         static_cast<double>(leading_integer(ticks)) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double monotonic_seconds() { return clock_seconds(CLOCK_MONOTONIC); }

void pin_to_core(int rank, int ranks) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < ranks) return;
  for (int core = 0, seen = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || seen++ != rank) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof(one), &one);
  }
}

}  // namespace lockstep::bench
