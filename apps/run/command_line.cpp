#include "command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/dist/environment.h"

namespace lockstep::run {
namespace {

using dist::LaunchOptions;

// What the flags say, before it is understood.
struct Raw {
  std::string nproc = "1";
  std::string nnodes = "1:1";
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = -1;
  bool standalone = false;
  int max_restarts = 0;
  double monitor_interval = 0.1;
  std::string redirects = "0";
  std::string tee = "0";
  std::string log_dir;
  std::string filter;
  std::string role = "default";
  std::string rdzv_backend = "static";
  std::string rdzv_endpoint;
  std::string rdzv_id = "none";
  std::string rdzv_conf;
  std::string start_method = "spawn";
  bool module = false;
  bool no_python = false;
  bool run_path = false;
  double join_timeout = 300;
  double failure_grace = 2;
  double stop_grace = 30;
};

// "--master-port" as "--master-port,--master_port", and PET_MASTER_PORT as torchrun has it.
std::string spellings(const std::string& flag, const std::string& letter = "") {
  std::string underscored = flag;
  std::ranges::replace(underscored, '-', '_');
  std::string names = letter.empty() ? "" : "-" + letter + ",";
  names += "--" + flag;
  if (underscored != flag) names += ",--" + underscored;
  return names;
}

std::string variable(const std::string& flag) {
  std::string name = "PET_" + flag;
  for (char& c : name) c = c == '-' ? '_' : (c >= 'a' && c <= 'z') ? char(c - 'a' + 'A') : c;
  return name;
}

int whole(const std::string& flag, const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Error("--" + flag + " '" + text + "': wants a whole number");
  }
  return value;
}

// "2" or "2:2"; a range would need elastic membership.
int parse_nnodes(const std::string& text) {
  const std::size_t colon = text.find(':');
  const int low = whole("nnodes", text.substr(0, colon));
  if (colon != std::string::npos && whole("nnodes", text.substr(colon + 1)) != low) {
    throw Error("--nnodes '" + text + "': the number of nodes is fixed here; give one number");
  }
  return low;
}

std::vector<int> parse_filter(const std::string& text) {
  std::vector<int> ranks;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    ranks.push_back(whole("local-ranks-filter", text.substr(start, end - start)));
    start = end + 1;
  }
  return ranks;
}

dist::Duration seconds(const char* flag, double value) {
  if (!(value >= 0 && value <= 1e9)) {
    throw Error(std::string("--") + flag + ": wants seconds, 0 or more");
  }
  return dist::Duration(static_cast<dist::Duration::rep>(value * 1000));
}

void use_endpoint(const Raw& raw, LaunchOptions& out) {
  if (raw.rdzv_backend != "static" && raw.rdzv_backend != "c10d") {
    throw Error("--rdzv-backend '" + raw.rdzv_backend +
                "': the launcher serves its own store; leave it out or say static or c10d");
  }
  if (raw.rdzv_endpoint.empty()) return;
  const std::size_t colon = raw.rdzv_endpoint.rfind(':');
  out.master_addr = raw.rdzv_endpoint.substr(0, colon);
  out.master_port = colon == std::string::npos
                        ? 29400
                        : whole("rdzv-endpoint", raw.rdzv_endpoint.substr(colon + 1));
}

// A script goes to the Python interpreter, as torchrun does it; anything else is a program.
std::vector<std::string> command_of(const Raw& raw, std::vector<std::string> rest) {
  const bool script = !raw.no_python && !rest.empty() && rest[0].ends_with(".py");
  if (raw.module && raw.no_python) throw Error("--module and --no-python exclude each other");
  if (!raw.module && !script) return rest;
  std::vector<std::string> command = {dist::environment_variable("PYTHON_EXEC").value_or("python3"),
                                      "-u"};
  if (raw.module) command.push_back("-m");
  command.insert(command.end(), rest.begin(), rest.end());
  return command;
}

LaunchOptions understand(const Raw& raw, std::vector<std::string> rest) {
  LaunchOptions out;
  const int cores = dist::allowed_cores();
  out.nproc_per_node = dist::resolve_nproc(raw.nproc, cores);
  out.nnodes = parse_nnodes(raw.nnodes);
  out.node_rank = raw.node_rank;
  out.master_addr = raw.master_addr;
  if (raw.run_path) throw Error("--run-path runs inside Python, which this launcher does not do");
  if (raw.master_port == 0 || raw.master_port < -1) {
    throw Error("--master-port " + std::to_string(raw.master_port) + " is not in 1..65535");
  }
  out.master_port = raw.master_port == -1 ? (out.nnodes > 1 ? 29500 : 0) : raw.master_port;
  use_endpoint(raw, out);
  if (raw.standalone) {
    if (out.nnodes != 1) throw Error("--standalone is for one node, --nnodes says more");
    out.master_addr = "127.0.0.1";
    out.master_port = 0;
  }
  out.max_restarts = raw.max_restarts;
  out.monitor_interval = seconds("monitor-interval", raw.monitor_interval);
  out.redirects = dist::StreamPlan::parse("--redirects", raw.redirects);
  out.tee = dist::StreamPlan::parse("--tee", raw.tee);
  out.log_dir = raw.log_dir;
  out.local_ranks_filter = parse_filter(raw.filter);
  out.run_id = raw.rdzv_id;
  out.role = raw.role;
  out.adopts_orphans = true;
  out.join_timeout = seconds("join-timeout", raw.join_timeout);
  out.failure_grace = seconds("failure-grace", raw.failure_grace);
  out.stop_grace = seconds("stop-grace", raw.stop_grace);
  if (dist::environment_variable("OMP_NUM_THREADS").value_or("").empty()) {
    out.omp_threads = std::max(1, cores / out.nproc_per_node);
  }
  out.command = command_of(raw, std::move(rest));
  dist::validate(out);
  return out;
}

void describe(CLI::App& app, Raw& raw) {
  const auto value = [&](const std::string& flag, auto& target, const char* help,
                         const std::string& letter = "") {
    app.add_option(spellings(flag, letter), target, help)
        ->envname(variable(flag))
        ->capture_default_str();
  };
  const auto flag = [&](const std::string& name, bool& target, const char* help,
                        const std::string& letter = "") {
    app.add_flag(spellings(name, letter), target, help);
  };
  value("nproc-per-node", raw.nproc, "workers on this node: a number, or auto/cpu: one per core");
  value("nnodes", raw.nnodes, "number of nodes");
  value("node-rank", raw.node_rank, "this node's number; node 0 serves the store");
  value("master-addr", raw.master_addr, "address of node 0");
  app.add_option(spellings("master-port"), raw.master_port,
                 "port of the store on node 0; default: a free one, with several nodes 29500")
      ->envname(variable("master-port"));
  flag("standalone", raw.standalone, "one node, free port");
  value("max-restarts", raw.max_restarts,
        "start all ranks again after a failure, at most so often");
  value("monitor-interval", raw.monitor_interval, "seconds between two looks at the other nodes");
  value("redirects", raw.redirects, "to files only: 1 stdout, 2 stderr, 3 both; or RANK:N,…", "r");
  value("tee", raw.tee, "to files and the console: as --redirects", "t");
  value("log-dir", raw.log_dir, "where those files go");
  value("local-ranks-filter", raw.filter, "show only these local ranks' output: 0,2");
  value("role", raw.role, "name in front of copied lines");
  value("rdzv-backend", raw.rdzv_backend, "static or c10d; both mean the launcher's own store");
  value("rdzv-endpoint", raw.rdzv_endpoint, "HOST[:PORT] instead of --master-addr, --master-port");
  value("rdzv-id", raw.rdzv_id, "the job's name in TORCHELASTIC_RUN_ID and the log folder");
  value("rdzv-conf", raw.rdzv_conf, "accepted, without effect");
  value("start-method", raw.start_method, "accepted, without effect");
  value("join-timeout", raw.join_timeout, "seconds to wait for the other nodes' launchers");
  value("failure-grace", raw.failure_grace, "seconds from SIGTERM to SIGKILL after a failure");
  value("stop-grace", raw.stop_grace, "the same after Ctrl-C or SIGTERM");
  flag("module", raw.module, "run a Python module: python3 -m NAME", "m");
  flag("no-python", raw.no_python, "never call Python, not even for NAME.py");
  flag("run-path", raw.run_path, "not supported");
}

}  // namespace

std::optional<LaunchOptions> parse_command_line(int argc, char** argv, int& exit_code) {
  CLI::App app("Starts the ranks of a job on this node and ends them together.", "lockstep-run");
  app.footer("Everything from the first word that is no flag is the program and its arguments.");
  app.prefix_command();
  Raw raw;
  describe(app, raw);
  try {
    app.parse(argc, argv);
    std::vector<std::string> rest = app.remaining();
    if (!rest.empty() && rest[0] == "--") rest.erase(rest.begin());
    if (!rest.empty() && rest[0].starts_with("-")) {
      throw Error("unknown flag '" + rest[0] + "'; --help lists them");
    }
    return understand(raw, std::move(rest));
  } catch (const CLI::Success& e) {
    exit_code = app.exit(e);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "lockstep-run: %s\n", e.what());
    exit_code = 2;
  }
  return std::nullopt;
}

}  // namespace lockstep::run
