// All ranks must hold the same model: checked before any gradient is summed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/dist/bucket.h"

namespace lockstep::dist {

class ProcessGroup;

// One line per parameter: name, dtype and shape.
std::string describe_parameters(const std::vector<NamedParameter>& parameters);

// In words, the first difference between two descriptions, rank 0's and another's: the counts, or
// the first parameter whose name, dtype or shape differ. Empty if there is none.
std::string first_difference(const std::string& rank0, int rank, const std::string& other);

// Collective. Throws Error on every rank, rank 0 included, with the first difference to rank 0.
void verify_parameters(const std::vector<NamedParameter>& parameters, ProcessGroup& group);

// FNV-1a of all bytes, in logical order: equal for equal bits.
std::uint64_t checksum(const std::vector<NamedParameter>& parameters);

// Collective. Throws Error on every rank, naming the ranks whose checksum differs from rank 0's.
void verify_same_values(const std::vector<NamedParameter>& parameters, ProcessGroup& group);

}  // namespace lockstep::dist
