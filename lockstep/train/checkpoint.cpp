#include "lockstep/train/checkpoint.h"

#include "lockstep/core/check.h"

namespace lockstep::train {
namespace {

constexpr const char* kFormat = "lockstep-checkpoint";
constexpr const char* kVersion = "1";

std::string metadata_at(const SafetensorsFile& file, const std::string& key) {
  const auto it = file.metadata.find(key);
  return it == file.metadata.end() ? "" : it->second;
}

}  // namespace

void save_checkpoint(const std::string& path, const TensorMap& tensors,
                     const CheckpointInfo& info) {
  save_safetensors(path, tensors,
                   {{"format", kFormat},
                    {"version", kVersion},
                    {"model", info.model},
                    {"content", info.weights_only ? "weights" : "training state"}});
}

TensorMap load_checkpoint(const std::string& path, const std::string& model) {
  SafetensorsFile file = load_safetensors_with_metadata(path);
  LOCKSTEP_CHECK(metadata_at(file, "format") == kFormat,
                 "checkpoint {}: this safetensors file is no checkpoint of Lockstep", path);
  LOCKSTEP_CHECK(metadata_at(file, "version") == kVersion,
                 "checkpoint {}: written in version '{}', this build reads version {}", path,
                 metadata_at(file, "version"), kVersion);
  LOCKSTEP_CHECK(metadata_at(file, "model") == model,
                 "checkpoint {}: holds model '{}' but '{}' is to be loaded", path,
                 metadata_at(file, "model"), model);
  return std::move(file.tensors);
}

void insert_part(TensorMap& checkpoint, const std::string& prefix, const TensorMap& part) {
  for (const auto& [name, tensor] : part) checkpoint[prefix + name] = tensor;
}

TensorMap extract_part(const TensorMap& checkpoint, const std::string& prefix, bool required) {
  TensorMap part;
  for (auto it = checkpoint.lower_bound(prefix);
       it != checkpoint.end() && it->first.starts_with(prefix); ++it)
    part[it->first.substr(prefix.size())] = it->second;
  LOCKSTEP_CHECK(!part.empty() || !required,
                 "checkpoint: it has no '{}…'; it holds weights only and can't be resumed from",
                 prefix);
  return part;
}

}  // namespace lockstep::train
