// Finds and ends what a job's workers left behind: processes and shared-memory segments.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "lockstep/dist/store.h"

namespace lockstep::dist {

// This user's processes, other than the caller, that have the variable `tag` ("NAME=value") in the
// environment they were started with; with `adopted` also every child of the calling process.
std::vector<pid_t> find_leftover_processes(const std::string& tag, bool adopted);

// Leaves them `patience` to end by themselves, then kills and reaps until none is left or `timeout`
// has passed. The number that had to be killed.
int end_leftover_processes(const std::string& tag, bool adopted, Duration patience,
                           Duration timeout);

// Removes the segments /dev/shm/lockstep-<uid>-<job_id>-*; how many there were.
int remove_shared_memory(const std::string& job_id);

}  // namespace lockstep::dist
