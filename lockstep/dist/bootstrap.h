// From environment to a store in which every rank of the job has arrived.
#pragma once

#include <memory>
#include <string>

#include "lockstep/dist/environment.h"
#include "lockstep/dist/store.h"

namespace lockstep::dist {

// Announces this rank and blocks until all `world_size` ranks are there. On every rank that is
// present: Error if a rank was claimed twice ("rank 0 claimed twice") or world sizes differ;
// TimeoutError names the ranks that are missing. `who` describes this process in such messages.
void join_world(Store& store, int rank, int world_size, const std::string& who, Duration timeout);

// The job's store, joined. A world of one has a LocalStore. Otherwise rank 0 serves at
// master_addr:master_port, unless the launcher does (store_hosted). Without a port (mpirun, Slurm)
// or under torchrun, whose own store holds master_port, rank 0 takes the first free one of 16 ports
// that follow from the job's name, and the others find it by that name. Keys of an earlier restart
// are out of sight. The serving rank's store stays up to 3 s in its destructor for the others.
// PortInUseError names the port; if it is a second rank 0 that holds it, the Error says "rank 0
// claimed twice".
std::shared_ptr<Store> open_store(const Environment& environment,
                                  Duration timeout = kDefaultStoreTimeout);

}  // namespace lockstep::dist
