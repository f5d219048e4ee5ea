// Checkpoints: everything a run needs to go on with the same bits, in one safetensors file that is
// replaced in one step.
#pragma once

#include <string>

#include "lockstep/core/safetensors.h"

namespace lockstep::train {

struct CheckpointInfo {
  std::string model;          // e.g. "toy_net"
  bool weights_only = false;  // no optimizer, schedule or position: can't be resumed from
};

// `tensors` under the names given, with what they are in the file's metadata. A failed save leaves
// the old file as it was and throws Error naming file and reason.
void save_checkpoint(const std::string& path, const TensorMap& tensors, const CheckpointInfo& info);

// Throws Error naming the file if it is absent, damaged (a checksum is kept in it), not a
// checkpoint, or of another model (both names are given).
TensorMap load_checkpoint(const std::string& path, const std::string& model);

// Parts of a checkpoint have names of their own behind a prefix: "optimizer." + key.
void insert_part(TensorMap& checkpoint, const std::string& prefix, const TensorMap& part);
// Throws Error if there is nothing under the prefix and `required`.
TensorMap extract_part(const TensorMap& checkpoint, const std::string& prefix,
                       bool required = true);

}  // namespace lockstep::train
