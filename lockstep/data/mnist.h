// MNIST (or any set in its form) from a folder of IDX files.
#pragma once

#include <memory>
#include <string>

#include "lockstep/data/image_dataset.h"

namespace lockstep::data {

// Looks in `folder`, folder/MNIST/raw and folder/raw for train-images-idx3-ubyte and
// train-labels-idx1-ubyte (kTest: t10k-…), also spelled train-images.idx3-ubyte, raw or with .gz.
// Images (N,1,H,W), labels 0..9. Errors: a missing file (names all that would do), damaged files,
// wrong shape or element type, image count unlike label count, labels out of range, an empty set.
std::shared_ptr<ImageDataset> load_mnist(const std::string& folder, Split split);

}  // namespace lockstep::data
