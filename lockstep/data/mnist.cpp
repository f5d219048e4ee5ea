#include "lockstep/data/mnist.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "lockstep/core/check.h"
#include "lockstep/core/idx.h"

namespace lockstep::data {
namespace {

std::string find_file(const std::string& folder, const std::string& part, const std::string& kind) {
  const std::filesystem::path base(folder);
  std::vector<std::string> names;
  for (const char* separator : {"-", "."})
    for (const char* ending : {"", ".gz"}) names.push_back(part + separator + kind + ending);
  for (const auto& place : {base, base / "MNIST" / "raw", base / "raw"})
    for (const std::string& name : names) {
      std::error_code ignored;
      if (std::filesystem::exists(place / name, ignored)) return (place / name).string();
    }
  throw Error(fmt::format("MNIST: \"{}\" (or its MNIST/raw or raw) holds none of {}", folder,
                          fmt::join(names, ", ")));
}

}  // namespace

std::shared_ptr<ImageDataset> load_mnist(const std::string& folder, Split split) {
  const std::string prefix = split == Split::kTrain ? "train" : "t10k";
  const std::string images_path = find_file(folder, prefix + "-images", "idx3-ubyte");
  const std::string labels_path = find_file(folder, prefix + "-labels", "idx1-ubyte");
  const Tensor images = load_idx(images_path);
  LOCKSTEP_CHECK(images.dtype() == kU8 && images.dim() == 3,
                 "MNIST: \"{}\" must hold (N,H,W) of u8 but holds {} of {}", images_path,
                 images.shape(), images.dtype());
  const Tensor labels = load_idx(labels_path);
  LOCKSTEP_CHECK(labels.dtype() == kU8 && labels.dim() == 1,
                 "MNIST: \"{}\" must hold (N,) of u8 but holds {} of {}", labels_path,
                 labels.shape(), labels.dtype());
  Tensor classes = empty(labels.shape(), {.dtype = kI64});
  std::copy_n(labels.data<std::uint8_t>(), labels.numel(), classes.data<std::int64_t>());
  constexpr std::int64_t kClasses = 10;
  return std::make_shared<ImageDataset>(images.unsqueeze(1), classes, kClasses,
                                        fmt::format("MNIST (\"{}\")", images_path));
}

}  // namespace lockstep::data
