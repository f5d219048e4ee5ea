// What a result must say of the machine and the program that it comes from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::bench {

std::string cpu_model();    // "unknown" where /proc/cpuinfo has none
int allowed_cores();        // of this process; 0 where unknown
double load_average();      // of the last minute; -1 where unknown
std::string governor();     // of the first core; "unreadable" in most virtual machines
std::string compiler();     // "GCC 12.2.0"
std::string build_flags();  // build type and compiler flags

// Largest resident memory of this process since its exec, bytes. Not ru_maxrss, which goes on with
// the maximum of whoever forked it.
std::int64_t peak_resident_bytes();

// Since the kernel started this process; a resolution of 10 ms.
double seconds_since_process_start();

// CLOCK_MONOTONIC, which all processes of a host share (Python: time.monotonic()).
double monotonic_seconds();

// The calling thread, and those that it starts, to the rank-th allowed core; without effect where
// there are fewer cores than ranks.
void pin_to_core(int rank, int ranks);

}  // namespace lockstep::bench
