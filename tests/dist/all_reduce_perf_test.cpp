// The program all_reduce_perf as its users run it: what it prints, writes and returns.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

namespace lockstep::bench {
namespace {

struct Outcome {
  int rc = -1;
  std::string out;
};

Outcome run(const std::string& arguments) {
  Outcome outcome;
  const std::string command = std::string(LOCKSTEP_ALL_REDUCE_PERF) + " " + arguments;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.out.append(buffer.data(), n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.rc = WEXITSTATUS(status);
  return outcome;
}

// Text parsers break with every release; JSON has a schema (NVIDIA/nccl-tests#120).
TEST(AllReducePerf, WritesJsonAlone) {
  const Outcome outcome = run("-b 8 -e 128K -f 11 -n 2 -w 1 --json -");
  ASSERT_EQ(outcome.rc, 0);
  const auto all = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(all.at("schema"), "lockstep.all_reduce_perf");
  EXPECT_EQ(all.at("schema_version"), 1);
  const auto& results = all.at("results");
  ASSERT_EQ(results.size(), 10u);
  std::set<bool> in_place;
  for (const auto& r : results) {
    EXPECT_EQ(r.at("op"), "all_reduce");
    EXPECT_EQ(r.at("dtype"), "f32");
    EXPECT_EQ(r.at("ranks"), 2);
    EXPECT_EQ(r.at("bytes").get<std::int64_t>(), 4 * r.at("count").get<std::int64_t>());
    EXPECT_EQ(r.at("samples"), 2);
    EXPECT_EQ(r.at("warm_up"), 1);
    EXPECT_GT(r.at("time_us").get<double>(), 0);
    EXPECT_NEAR(r.at("busbw_gb_per_s").get<double>(), r.at("algbw_gb_per_s").get<double>(), 1e-9);
    EXPECT_EQ(r.at("time_us"), r.at("rank_time_us").at("max"));
    EXPECT_EQ(r.at("wrong_by_rank"), nlohmann::json({0, 0}));
    in_place.insert(r.at("in_place").get<bool>());
  }
  EXPECT_EQ(in_place.size(), 2u);
}

// A failure on another rank than 0 is reported with both ranks' figures, and not only by the exit
// status (ROCm/rocm-systems#10541, NVIDIA/nccl-tests#104).
TEST(AllReducePerf, AWrongElementOnAnyRankFailsTheRun) {
  for (const std::string where : {"--ranks 2", "--local 2"}) {
    const Outcome json = run("-b 1K -e 1K -n 1 -w 0 --inject-error 1 --json - " + where);
    EXPECT_EQ(json.rc, 1) << where;
    const auto all = nlohmann::json::parse(json.out);
    EXPECT_EQ(all.at("failed_ranks"), nlohmann::json({1}));
    EXPECT_EQ(all.at("results")[0].at("wrong_by_rank"), nlohmann::json({0, 1}));
    const Outcome table = run("-b 1K -e 1K -n 1 -w 0 --inject-error 1 " + where);
    EXPECT_EQ(table.rc, 1) << where;
    EXPECT_NE(table.out.find("WRONG results on rank 1"), std::string::npos) << table.out;
  }
}

// The table prints the sizes that were run (NVIDIA/nccl-tests#104), n/a for one rank (#71).
TEST(AllReducePerf, PrintsATable) {
  const Outcome outcome = run("-b 12 -e 12M -i 3M -n 1 -w 0 -d f32 --local 1");
  ASSERT_EQ(outcome.rc, 0);
  EXPECT_NE(outcome.out.find("# all_reduce_perf: 1 ranks, transport local"), std::string::npos);
  std::istringstream lines(outcome.out);
  std::vector<std::int64_t> sizes;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    sizes.push_back(std::stoll(line));
    EXPECT_NE(line.find("n/a"), std::string::npos) << line;
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{12, 3145740, 6291468, 9437196}));
}

TEST(AllReducePerf, ChecksEveryTypeOpAndMemory) {
  for (const std::string type : {"f64", "f16", "bf16", "i32", "i64", "u8"})
    EXPECT_EQ(run("-b 200 -e 200K -f 1000 -n 1 -w 0 -o max -d " + type).rc, 0) << type;
  for (const std::string flags : {"-o product", "-o min", "--plain", "--async", "--ranks 3"})
    EXPECT_EQ(run("-b 200 -e 200K -f 1000 -n 1 -w 0 " + flags).rc, 0) << flags;
}

TEST(AllReducePerf, RefusesBadArguments) {
  for (const std::string bad : {"-b 1X", "-d f8", "-o mean", "--no-such-flag", "-n 0", "-b 8 -e 4"})
    EXPECT_EQ(run(bad + " 2>/dev/null").rc, 2) << bad;
  EXPECT_EQ(run("--help").rc, 0);
}

}  // namespace
}  // namespace lockstep::bench
