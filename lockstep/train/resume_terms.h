// What a resumed run must share with the one that was interrupted, to go on with the same bits.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/train/recipe_options.h"

namespace lockstep::train {

// The choices that shape the bits, as lines "name value". What may change is not among them: the
// last epoch (unless the cosine ends there), when to stop and save, buckets, threads, loaders.
std::string resume_terms(const RecipeOptions& options, std::int64_t train_images,
                         std::int64_t valid_images);

// The lines that differ: "batch_size was 64 and is 32, …"; empty if none does.
std::string terms_difference(const std::string& was, const std::string& is);

}  // namespace lockstep::train
