#include "lockstep/train/recipe_options.h"

#include <gtest/gtest.h>

#include <numeric>

#include "lockstep/core/error.h"
#include "lockstep/core/tensor.h"
#include "lockstep/train/resume_terms.h"
#include "lockstep/train/tensor_checksum.h"
#include "support/message.h"

namespace lockstep::train {
namespace {

using lockstep::testing::message_of;

TEST(RecipeOptions, DefaultsAreTheRecipes) {
  const RecipeOptions o;
  EXPECT_NO_THROW(check_options(o));
  EXPECT_EQ(o.exp_name, "DDP_warmup");
  EXPECT_EQ(o.learning_rate, 0.1);
  EXPECT_EQ(o.batch_size, 1024);
  EXPECT_EQ(o.epochs, 500);
  EXPECT_EQ(o.warmup_epochs, 10);
  EXPECT_EQ(o.warmup_type, WarmupType::kLinear);
  EXPECT_EQ(o.seed, 42u);
  EXPECT_EQ(o.model_path, "./experiment_model/");
  EXPECT_EQ(o.plateau_factor, 0.1);
  EXPECT_EQ(o.plateau_patience, 6);
  EXPECT_EQ(o.stop_patience, 30);
  EXPECT_EQ(o.lookahead_k, 10);
  EXPECT_EQ(o.lookahead_alpha, 0.5);
}

TEST(RecipeOptions, AMistakeIsNamedWithFlagAndValue) {
  RecipeOptions o;
  o.batch_size = 0;
  EXPECT_EQ(message_of<Error>([&] { check_options(o); }),
            "--batch_size: expected at least 1 but got 0");
  o = {};
  o.learning_rate = -1;
  EXPECT_EQ(message_of<Error>([&] { check_options(o); }),
            "--learning_rate: expected a number above 0 but got -1");
}

TEST(ResumeTerms, NameWhatDiffersAndNothingElse) {
  RecipeOptions a, b;
  b.epochs = a.epochs + 1;  // a longer run may go on
  b.stop_patience = 3;
  b.save_every = 7;
  b.bucket_cap_mb = 2;
  EXPECT_EQ(terms_difference(resume_terms(a, 10, 5), resume_terms(b, 10, 5)), "");
  b.seed = 1;
  b.momentum = 0.5;
  EXPECT_EQ(
      terms_difference(resume_terms(a, 10, 5), resume_terms(b, 11, 5)),
      "momentum was 0.9 and is 0.5, seed_num was 42 and is 1, training_images was 10 and is 11");
}

TEST(ResumeTerms, TheCosineFixesTheLastEpoch) {
  RecipeOptions a;
  a.warmup_type = WarmupType::kCosine;
  RecipeOptions b = a;
  b.epochs = 7;
  EXPECT_EQ(terms_difference(resume_terms(a, 1, 1), resume_terms(b, 1, 1)),
            "epochs was 500 and is 7");
}

TEST(TensorChecksum, SeesEveryByteNameShapeAndType) {
  std::vector<float> values(37);
  std::iota(values.begin(), values.end(), 0.f);
  Tensor t = tensor(values);
  const std::uint64_t before = tensor_checksum({{"t", t}});
  EXPECT_EQ(tensor_checksum({{"t", t.clone()}}), before);
  EXPECT_NE(tensor_checksum({{"u", t}}), before);
  EXPECT_NE(tensor_checksum({{"t", t.reshape({37, 1})}}), before);
  auto* bytes = static_cast<unsigned char*>(t.data());
  for (std::size_t i = 0; i < t.nbytes(); ++i) {
    for (int bit = 0; bit < 8; bit += 7) {
      bytes[i] = static_cast<unsigned char>(bytes[i] ^ 1 << bit);
      EXPECT_NE(tensor_checksum({{"t", t}}), before) << "byte " << i << ", bit " << bit;
      bytes[i] = static_cast<unsigned char>(bytes[i] ^ 1 << bit);
    }
  }
  EXPECT_EQ(tensor_checksum({{"t", t}}), before);
}

TEST(TensorChecksum, LayoutDoesNotMatter) {
  const Tensor t = arange(12).reshape({3, 4});
  const Tensor turned = t.transpose(0, 1).contiguous().transpose(0, 1);
  EXPECT_EQ(tensor_checksum({{"t", t}}), tensor_checksum({{"t", turned}}));
}

}  // namespace
}  // namespace lockstep::train
