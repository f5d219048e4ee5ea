#include "lockstep/train/checkpoint.h"

#include "lockstep/core/check.h"
#include "lockstep/train/tensor_checksum.h"

namespace lockstep::train {
namespace {

constexpr const char* kFormat = "lockstep-checkpoint";
constexpr const char* kVersion = "1";

std::string metadata_at(const SafetensorsFile& file, const std::string& key) {
  const auto it = file.metadata.find(key);
  return it == file.metadata.end() ? "" : it->second;
}

std::string checksum_text(const TensorMap& tensors) {
  return fmt::format("{:016x}", tensor_checksum(tensors));
}

}  // namespace

void save_checkpoint(const std::string& path, const TensorMap& given, const CheckpointInfo& info) {
  TensorMap tensors;
  for (const auto& [name, tensor] : given) tensors[name] = tensor.to(kCpu);
  save_safetensors(path, tensors,
                   {{"format", kFormat},
                    {"version", kVersion},
                    {"model", info.model},
                    {"checksum", checksum_text(tensors)},
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
  const std::string saved = metadata_at(file, "checksum"), mine = checksum_text(file.tensors);
  LOCKSTEP_CHECK(saved == mine,
                 "checkpoint {}: it is damaged: the checksum of its contents is {}, it says '{}'",
                 path, mine, saved);
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
                 "no '{}…' in it: it holds no whole training state and can't be resumed from",
                 prefix);
  return part;
}

}  // namespace lockstep::train
