// The program bench_step as its users run it: what it prints, writes and returns.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/flops.h"

namespace lockstep::bench {
namespace {

struct Outcome {
  int rc = -1;
  std::string out;
};

Outcome run(const std::string& command) {
  Outcome outcome;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.out.append(buffer.data(), n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.rc = WEXITSTATUS(status);
  return outcome;
}

const std::string kPrograms = LOCKSTEP_PROGRAMS;
const std::string kBenchStep = kPrograms + "/bench_step --batch 4 ";

// Warm-up steps are dropped and their number is given (dotnet/sdk#2449); what the library starts is
// reported apart (pytorch/pytorch#20156).
TEST(BenchStep, WritesJsonAlone) {
  const Outcome outcome = run(kBenchStep + "--steps 3 --warmup 2 --lookahead --json -");
  ASSERT_EQ(outcome.rc, 0);
  const auto all = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(all.at("schema"), "lockstep.bench_step");
  EXPECT_EQ(all.at("model"), "toy_net");
  EXPECT_EQ(all.at("dtype"), "f32");
  EXPECT_EQ(all.at("batch_per_rank"), 4);
  EXPECT_EQ(all.at("ranks"), 1);
  EXPECT_EQ(all.at("lookahead"), true);
  EXPECT_GT(all.at("init_ms").get<double>(), 0);
  EXPECT_GT(all.at("start_to_first_step_s").get<double>() * 1e3 + 10,
            all.at("init_ms").get<double>());
  EXPECT_GT(all.at("peak_resident_mb").get<double>(), 20);
  EXPECT_NE(all.at("flop_convention").get<std::string>().find("multiply-add"), std::string::npos);
  for (const char* fact : {"cpu", "allowed_cores", "governor", "load", "compiler", "flags"})
    EXPECT_TRUE(all.at("machine").contains(fact)) << fact;
  ASSERT_EQ(all.at("results").size(), 1u);
  const auto& r = all.at("results")[0];
  EXPECT_EQ(r.at("steps"), 3);
  EXPECT_EQ(r.at("warm_up"), 2);
  EXPECT_EQ(r.at("samples_seen"), 4 * 5);
  const double ms = r.at("step_ms").at("median").get<double>();
  EXPECT_NEAR(r.at("images_per_s").get<double>() * ms, 4e3, 1e-6);
  EXPECT_NEAR(r.at("gflop_per_s").get<double>() * ms * 1e6,
              static_cast<double>(toy_net_step_flop(4)), 1.0);
  EXPECT_LE(r.at("step_ms").at("p5").get<double>(), ms);
  EXPECT_GE(r.at("step_ms").at("p95").get<double>(), ms);
}

// A seed that comes again is marked and does not count (mlcommons/training_policies#479).
TEST(BenchStep, SeedsAreInEachResult) {
  const Outcome outcome =
      run(kBenchStep + "--model mlp --steps 1 --warmup 0 --seeds 1,2,2,4,5 --json -");
  ASSERT_EQ(outcome.rc, 0);
  const auto all = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(all.at("results").size(), 5u);
  EXPECT_EQ(all.at("results")[3].at("seed"), 4);
  EXPECT_EQ(all.at("summary").at("independent_results"), 4);
  EXPECT_EQ(all.at("summary").at("duplicated_seeds"), nlohmann::json({2}));
  EXPECT_EQ(all.at("results")[1].at("first_loss"), all.at("results")[2].at("first_loss"));
  EXPECT_NE(all.at("results")[0].at("first_loss"), all.at("results")[1].at("first_loss"));
  EXPECT_TRUE(all.at("results")[0].at("gflop_per_s").is_null());
  const Outcome text = run(kBenchStep + "--model mlp --steps 1 --warmup 0 --seeds 3,3");
  EXPECT_NE(text.out.find("1 independent trainings"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("not counted: seed 3"), std::string::npos) << text.out;
}

TEST(BenchStep, TrainsInDouble) {
  const Outcome outcome =
      run(kBenchStep + "--model small_net --dtype f64 --steps 30 --warmup 0 --json -");
  ASSERT_EQ(outcome.rc, 0);
  const auto r = nlohmann::json::parse(outcome.out).at("results")[0];
  EXPECT_LT(r.at("last_loss").get<double>(), r.at("first_loss").get<double>());
}

TEST(BenchStep, TwoRanksCountAllImages) {
  const Outcome outcome = run(kPrograms + "/lockstep-run --nproc-per-node 2 " + kBenchStep +
                              "--model mlp --ranks 2 --steps 2 --warmup 1 --json - 2>/dev/null");
  ASSERT_EQ(outcome.rc, 0);
  const auto all = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(all.at("ranks"), 2);
  const auto& r = all.at("results")[0];
  EXPECT_EQ(r.at("samples_seen"), 2 * 4 * 3);
  EXPECT_NEAR(r.at("images_per_s").get<double>() * r.at("step_ms").at("median").get<double>(), 8e3,
              1e-6);
}

TEST(BenchStep, RefusesBadArguments) {
  for (const std::string bad :
       {"--dtype bf16", "--dtype f8", "--model resnet", "--threads 0", "--batch 1", "--ranks 2",
        "--no-such-flag", "--json /no/such/folder/x", "--steps 1 --seeds x"}) {
    const Outcome outcome = run(kBenchStep + "--steps 1 --warmup 0 " + bad + " 2>&1");
    EXPECT_EQ(outcome.rc, 2) << bad;
    EXPECT_NE(outcome.out.find("bench_step: "), std::string::npos) << bad << ": " << outcome.out;
  }
  EXPECT_EQ(run(kBenchStep + "--help").rc, 0);
}

}  // namespace
}  // namespace lockstep::bench
