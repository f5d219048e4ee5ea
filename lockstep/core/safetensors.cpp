#include "lockstep/core/safetensors.h"

#include <algorithm>
#include <utility>

#include "lockstep/core/atomic_file.h"
#include "lockstep/core/byte_order.h"
#include "lockstep/core/check.h"
#include "lockstep/core/file_reader.h"
#include "lockstep/core/safetensors_header.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kPrefix = 8;               // the header's length
constexpr std::uint64_t kMaxHeader = 100'000'000;  // as in the reference implementation

}  // namespace

SafetensorsFile load_safetensors_with_metadata(const std::string& path) {
  const FileReader file(path);
  std::uint64_t length = 0;
  file.read_at(0, &length, kPrefix);
  if (length > file.size() - kPrefix)
    file.damaged(0, fmt::format("the header should have {} bytes but only {} follow", length,
                                file.size() - kPrefix));
  if (length > kMaxHeader)
    file.damaged(0,
                 fmt::format("a header of {} bytes; at most {} are allowed", length, kMaxHeader));
  std::string text(length, '\0');
  file.read_at(kPrefix, text.data(), text.size());

  const std::uint64_t data_start = kPrefix + length;
  SafetensorsHeader header;
  try {
    header = parse_safetensors_header(text, file.size() - data_start);
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const Error& error) {
    file.damaged(kPrefix, fmt::format("header: {}", error.what()));
  }

  SafetensorsFile result;
  result.metadata = std::move(header.metadata);
  for (const SafetensorsEntry& entry : header.entries) {
    Tensor tensor = empty(entry.shape, {.dtype = entry.dtype});
    file.read_at(data_start + entry.begin, tensor.data(), tensor.nbytes());
    if (entry.dtype == kBool) check_bools(file, data_start + entry.begin, tensor);
    result.tensors.emplace(entry.name, std::move(tensor));
  }
  return result;
}

TensorMap load_safetensors(const std::string& path) {
  return std::move(load_safetensors_with_metadata(path).tensors);
}

void save_safetensors(const std::string& path, const TensorMap& tensors, const Metadata& metadata) {
  SafetensorsHeader header;
  header.metadata = metadata;
  for (const auto& [name, tensor] : tensors) {
    LOCKSTEP_CHECK(name != "__metadata__", "save_safetensors: a tensor may not be named {}", name);
    LOCKSTEP_CHECK(tensor.defined(), "save_safetensors: tensor \"{}\" is undefined", name);
    LOCKSTEP_CHECK(tensor.device().is_cpu(), "save_safetensors: tensor \"{}\" is on {}, not cpu",
                   name, tensor.device().str());
    header.entries.push_back({name, tensor.dtype(), tensor.shape(), 0, 0});
  }
  const auto larger_elements_first = [](const auto& a, const auto& b) {
    return dtype_size(a.dtype) > dtype_size(b.dtype);
  };
  std::stable_sort(header.entries.begin(), header.entries.end(), larger_elements_first);
  std::uint64_t at = 0;
  for (SafetensorsEntry& entry : header.entries) {
    entry.begin = at;
    at += tensors.at(entry.name).nbytes();
    entry.end = at;
  }

  const std::string text = format_safetensors_header(header);
  LOCKSTEP_CHECK(text.size() <= kMaxHeader,
                 "save_safetensors: the header needs {} bytes; at most {} are allowed", text.size(),
                 kMaxHeader);
  const std::uint64_t length = text.size();
  AtomicFile file(path);
  file.write(&length, kPrefix);
  file.write(text);
  for (const SafetensorsEntry& entry : header.entries) {
    const Tensor rows = tensors.at(entry.name).contiguous();
    file.write(rows.data(), rows.nbytes());
  }
  file.commit();
}

}  // namespace lockstep
