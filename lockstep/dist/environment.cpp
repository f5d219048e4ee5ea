#include "lockstep/dist/environment.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lockstep/core/check.h"

namespace lockstep::dist {
namespace {

// Ports for jobs that were given none: below Linux's ephemeral range, so that no client sits there.
constexpr int kFirstDerivedPort = 20000;
constexpr int kDerivedPorts = 12000;
constexpr int kPortSpan = 16;

class Reader {
 public:
  explicit Reader(const VariableLookup& lookup) : lookup_(lookup) {}

  std::optional<std::string> text(const std::string& name) const {
    std::optional<std::string> value = lookup_(name);
    if (value && value->empty()) value.reset();
    return value;
  }

  std::optional<int> number(const std::string& name, int low, int high) const {
    const std::optional<std::string> value = text(name);
    if (!value) return std::nullopt;
    std::int64_t parsed = 0;
    const char* end = value->data() + value->size();
    const auto [stop, error] = std::from_chars(value->data(), end, parsed);
    LOCKSTEP_CHECK(error == std::errc() && stop == end, "{}='{}' is not a whole number", name,
                   *value);
    LOCKSTEP_CHECK(parsed >= low && parsed <= high, "{}={} is outside {}..{}", name, parsed, low,
                   high);
    return static_cast<int>(parsed);
  }

  // The first of the two that is set.
  std::optional<int> number(const std::string& name, const std::string& fallback, int low,
                            int high) const {
    const std::optional<int> value = number(name, low, high);
    return value ? value : number(fallback, low, high);
  }

 private:
  const VariableLookup& lookup_;
};

constexpr int kMaxRanks = 1 << 20;

// Where one launcher family keeps its figures.
struct Names {
  const char *rank, *world, *local_rank, *local_world;
};

constexpr Names kTorch = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kSlurm = {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", ""};

// True if rank and world are set under these names; Error if only one is.
bool read_world(const Reader& read, const Names& names, Environment& out) {
  const std::optional<int> rank = read.number(names.rank, 0, kMaxRanks);
  const std::optional<int> world = read.number(names.world, 1, kMaxRanks);
  if (!rank && !world) return false;
  LOCKSTEP_CHECK(rank && world, "{} is set but {} is not: both or neither",
                 rank ? names.rank : names.world, rank ? names.world : names.rank);
  LOCKSTEP_CHECK(*rank < *world, "{}={} is outside the world: {}={}", names.rank, *rank,
                 names.world, *world);
  out.rank = *rank;
  out.world_size = *world;
  const bool names_local_world = *names.local_world != '\0';
  const int local_rank = read.number(names.local_rank, 0, kMaxRanks).value_or(-1);
  const int local_world =
      names_local_world ? read.number(names.local_world, 1, kMaxRanks).value_or(0) : 0;
  // Without a word about nodes, all ranks are taken to be on one.
  if (local_world > 0) {
    out.local_world_size = local_world;
    out.local_rank = local_rank >= 0 ? local_rank : *rank % local_world;
  } else {
    out.local_world_size = local_rank >= 0 ? local_rank + 1 : *world;
    out.local_rank = local_rank >= 0 ? local_rank : *rank;
  }
  LOCKSTEP_CHECK(out.local_rank < out.local_world_size, "{}={} is outside the node's ranks: {}={}",
                 names.local_rank, out.local_rank, names.local_world, out.local_world_size);
  LOCKSTEP_CHECK(out.local_world_size <= out.world_size, "{}={} is more than {}={}",
                 names.local_world, out.local_world_size, names.world, out.world_size);
  return true;
}

// "node[003-006,9],other" -> "node003".
std::string first_host(const std::string& list) {
  const std::size_t bracket = list.find_first_of("[,");
  if (bracket == std::string::npos || list[bracket] == ',') return list.substr(0, bracket);
  const std::size_t end = list.find_first_of("-,]", bracket);
  LOCKSTEP_CHECK(end != std::string::npos, "SLURM node list '{}' has no closing bracket", list);
  const std::size_t close = list.find(']', bracket);
  LOCKSTEP_CHECK(close != std::string::npos, "SLURM node list '{}' has no closing bracket", list);
  const std::string tail = list.substr(close + 1, list.find(',', close) - close - 1);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1) + tail;
}

// "2(x3),1" -> the entry of the given node.
int tasks_on_node(const std::string& list, int node) {
  std::string_view rest = list;
  const auto take = [&rest](int& number) {
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
    return error == std::errc() && number > 0;
  };
  while (!rest.empty()) {
    int tasks = 0;
    int repeat = 1;
    bool valid = take(tasks);
    if (valid && rest.starts_with("(x")) {
      rest.remove_prefix(2);
      valid = take(repeat) && rest.starts_with(")");
      if (valid) rest.remove_prefix(1);
    }
    LOCKSTEP_CHECK(valid && (rest.empty() || rest.front() == ','),
                   "SLURM_STEP_TASKS_PER_NODE='{}' is no task list", list);
    if (node < repeat) return tasks;
    node -= repeat;
    if (!rest.empty()) rest.remove_prefix(1);
  }
  throw Error(fmt::format("SLURM_STEP_TASKS_PER_NODE='{}' has no entry for this node", list));
}

void read_slurm_place(const Reader& read, Environment& out) {
  out.group_rank = read.number("SLURM_NODEID", 0, kMaxRanks).value_or(0);
  if (const auto tasks = read.text("SLURM_STEP_TASKS_PER_NODE")) {
    out.local_world_size = tasks_on_node(*tasks, out.group_rank);
    LOCKSTEP_CHECK(out.local_rank < out.local_world_size,
                   "SLURM_LOCALID={} is outside SLURM_STEP_TASKS_PER_NODE={}", out.local_rank,
                   *tasks);
  }
  auto nodes = read.text("SLURM_STEP_NODELIST");
  if (!nodes) nodes = read.text("SLURM_JOB_NODELIST");
  if (nodes) out.master_addr = first_host(*nodes);
}

// FNV-1a: the same on every host.
std::uint32_t hash(std::string_view text) {
  std::uint32_t value = 2166136261U;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 16777619U;
  return value;
}

void derive_port(Environment& out) {
  out.master_port = kFirstDerivedPort + static_cast<int>(hash(out.job_id) % kDerivedPorts);
  out.port_span = kPortSpan;
}

}  // namespace

Environment read_environment() { return read_environment(environment_variable); }

Environment read_environment(const VariableLookup& lookup) {
  const Reader read(lookup);
  Environment out;
  const bool torch = read_world(read, kTorch, out);
  const bool mpi = !torch && read_world(read, kOpenMpi, out);
  // An allocation sets SLURM_NTASKS alone; only a step's process has SLURM_PROCID.
  const bool slurm = !torch && !mpi && read.text("SLURM_PROCID") && read_world(read, kSlurm, out);
  out.launched = torch || mpi || slurm;
  if (torch) {
    out.group_rank =
        read.number("GROUP_RANK", 0, kMaxRanks).value_or(out.rank / out.local_world_size);
  } else if (mpi) {
    const bool one_node = out.local_world_size == out.world_size;
    LOCKSTEP_CHECK(one_node || read.text("MASTER_ADDR"),
                   "mpirun over several nodes: export MASTER_ADDR, the host of rank 0");
  } else if (slurm) {
    read_slurm_place(read, out);
  }
  out.job_id = read.text("LOCKSTEP_JOB_ID").value_or("");
  out.interface = read.text("LOCKSTEP_INTERFACE").value_or("");
  out.store_hosted = read.number("LOCKSTEP_STORE_HOSTED", 0, 1).value_or(0) != 0;
  out.restart_count = read.number("TORCHELASTIC_RESTART_COUNT", 0, kMaxRanks).value_or(0);
  out.max_restarts = read.number("TORCHELASTIC_MAX_RESTARTS", 0, kMaxRanks).value_or(0);
  if (const auto addr = read.text("MASTER_ADDR")) out.master_addr = *addr;
  const std::optional<int> port = read.number("MASTER_PORT", 1, 65535);
  out.master_port = port.value_or(0);

  const auto agent = read.text("TORCHELASTIC_USE_AGENT_STORE");
  const bool torch_store = agent && (*agent == "True" || *agent == "1") && !out.store_hosted;
  if (torch_store && port) {
    // torchrun's own store, of another protocol, sits on MASTER_PORT.
    if (out.job_id.empty()) {
      out.job_id =
          fmt::format("torchrun-{}-{}-{}", read.text("TORCHELASTIC_RUN_ID").value_or("none"),
                      out.master_addr, *port);
    }
    derive_port(out);
  } else if (!port && (mpi || slurm)) {
    if (out.job_id.empty()) {
      out.job_id =
          mpi ? fmt::format("mpi-{}",
                            read.text("PMIX_NAMESPACE")
                                .value_or(read.text("OMPI_MCA_ess_base_jobid").value_or("none")))
              : fmt::format("slurm-{}-{}", read.text("SLURM_JOB_ID").value_or("none"),
                            read.text("SLURM_STEP_ID").value_or("0"));
    }
    derive_port(out);
  }
  return out;
}

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::vector<std::string> environment_block() {
  std::vector<std::string> block;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    block.emplace_back(*entry);
  }
  return block;
}

}  // namespace lockstep::dist
