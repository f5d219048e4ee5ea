// The embedded data set: the UCI optical digits, 1,797 real handwritten digits (CC BY 4.0, see
// digits/SOURCE.md), in MNIST's form, so that training needs no download.
#pragma once

#include <memory>

#include "lockstep/data/image_dataset.h"

namespace lockstep::data {

// Images (N,1,28,28), labels 0..9. Every fifth image of each class, in the table's order, is held
// out: kTest has 355 images, kTrain the other 1,442. The 8×8 originals (0..16) are enlarged
// bilinearly with pixel centres at half-integers (as PyTorch's interpolate with
// align_corners=False), scaled by 255/16 and rounded half up, all in integers.
std::shared_ptr<ImageDataset> load_digits(Split split);

}  // namespace lockstep::data
