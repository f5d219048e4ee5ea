#include "lockstep/train/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/core/error.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/train/rank_state.h"
#include "support/expect_close.h"

namespace lockstep::train {
namespace {

std::string temp_path(const std::string& name) {
  return (std::filesystem::path(::testing::TempDir()) / name).string();
}

std::string load_error(const std::string& path, const std::string& model) {
  try {
    load_checkpoint(path, model);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Checkpoint, RoundTrip) {
  const std::string path = temp_path("round.safetensors");
  TensorMap state;
  insert_part(state, "model.", {{"w", tensor({1.f, 2.f})}});
  insert_part(state, "run.", {{"step", tensor<std::int64_t>({7}, {})}});
  save_checkpoint(path, state, {"mlp"});
  const TensorMap back = load_checkpoint(path, "mlp");
  EXPECT_SAME_BITS(extract_part(back, "model.").at("w"), tensor({1.f, 2.f}));
  EXPECT_EQ(extract_part(back, "run.").at("step").item<std::int64_t>(), 7);
  EXPECT_TRUE(extract_part(back, "nothing.", false).empty());
  EXPECT_THROW(extract_part(back, "optimizer."), Error);
}

TEST(Checkpoint, AnotherModelIsNamed) {
  const std::string path = temp_path("other.safetensors");
  save_checkpoint(path, {{"w", ones({1})}}, {"mlp"});
  const std::string error = load_error(path, "toy_net");
  EXPECT_NE(error.find("mlp"), std::string::npos) << error;
  EXPECT_NE(error.find("toy_net"), std::string::npos) << error;
  EXPECT_NE(error.find(path), std::string::npos) << error;
}

TEST(Checkpoint, ForeignAbsentAndDamagedFilesAreNamed) {
  const std::string foreign = temp_path("foreign.safetensors");
  save_safetensors(foreign, {{"w", ones({1})}});
  EXPECT_NE(load_error(foreign, "mlp").find("no checkpoint"), std::string::npos);
  const std::string absent = temp_path("absent.safetensors");
  EXPECT_NE(load_error(absent, "mlp").find(absent), std::string::npos);
  const std::string damaged = temp_path("damaged.safetensors");
  save_checkpoint(damaged, {{"w", ones({100})}}, {"mlp"});
  std::filesystem::resize_file(damaged, std::filesystem::file_size(damaged) - 10);
  EXPECT_NE(load_error(damaged, "mlp").find(damaged), std::string::npos);
}

TEST(RankState, EachRankGetsItsOwnBack) {
  dist::run_local_ranks(3, [](dist::ProcessGroup& group) {
    const Tensor mine = full({5}, 10 + group.rank(), {.dtype = kU8});
    const TensorMap states = gather_rank_states(mine, group);
    EXPECT_SAME_BITS(rank_state_of(states, group.rank(), 3), mine);
    EXPECT_THROW(rank_state_of(states, 0, 2), Error);
  });
}

}  // namespace
}  // namespace lockstep::train
