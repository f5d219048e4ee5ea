// A few small images in MNIST's files, whole or damaged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "support/temp_folder.h"

namespace lockstep::testing {

inline void append_big_endian(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}

// An IDX file of bytes.
inline std::string idx(const std::vector<std::uint32_t>& dims, const std::string& elements) {
  std::string file{0, 0, 8, static_cast<char>(dims.size())};
  for (const std::uint32_t dim : dims) append_big_endian(file, dim);
  return file + elements;
}

inline std::string some_images(std::uint32_t n, std::uint32_t side = 8) {
  std::string pixels;
  for (std::uint32_t i = 0; i < n * side * side; ++i)
    pixels.push_back(static_cast<char>(i * 2654435761u >> 24));
  return idx({n, side, side}, pixels);
}

inline std::string some_labels(std::uint32_t n, int largest = 9) {
  std::string labels;
  for (std::uint32_t i = 0; i < n; ++i) labels.push_back(static_cast<char>(i % 10));
  if (n > 0) labels[n / 2] = static_cast<char>(largest);
  return idx({n}, labels);
}

constexpr const char* kTrainImages = "train-images-idx3-ubyte";
constexpr const char* kTrainLabels = "train-labels-idx1-ubyte";
constexpr const char* kTestImages = "t10k-images-idx3-ubyte";
constexpr const char* kTestLabels = "t10k-labels-idx1-ubyte";

// A whole set; files may be damaged afterwards.
inline std::string write_tiny_mnist(const TempFolder& folder, std::uint32_t train = 12,
                                    std::uint32_t test = 5, std::uint32_t side = 8) {
  const std::string path = folder / "mnist";
  std::filesystem::create_directories(path);
  write_bytes(path + "/" + kTrainImages, some_images(train, side));
  write_bytes(path + "/" + kTrainLabels, some_labels(train));
  write_bytes(path + "/" + kTestImages, some_images(test, side));
  write_bytes(path + "/" + kTestLabels, some_labels(test));
  return path;
}

}  // namespace lockstep::testing
