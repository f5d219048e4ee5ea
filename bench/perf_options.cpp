#include "bench/perf_options.h"

#include <CLI/CLI.hpp>

#include "bench/bandwidth.h"
#include "lockstep/core/error.h"

namespace lockstep::bench {

DType parse_dtype(const std::string& name) {
  for (const DType dtype :
       {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32, DType::kI64, DType::kU8})
    if (name == dtype_name(dtype)) return dtype;
  // The names of nccl-tests.
  if (name == "float") return DType::kF32;
  if (name == "double") return DType::kF64;
  if (name == "half") return DType::kF16;
  if (name == "bfloat16") return DType::kBF16;
  if (name == "int32") return DType::kI32;
  if (name == "int64") return DType::kI64;
  if (name == "uint8") return DType::kU8;
  throw Error("no data type \"" + name + "\"; there are f32, f64, f16, bf16, i32, i64, u8");
}

dist::ReduceOp parse_reduce_op(const std::string& name) {
  for (const dist::ReduceOp op :
       {dist::ReduceOp::kSum, dist::ReduceOp::kProduct, dist::ReduceOp::kMin, dist::ReduceOp::kMax})
    if (name == dist::reduce_op_name(op)) return op;
  if (name == "prod") return dist::ReduceOp::kProduct;
  throw Error("no reduction \"" + name + "\"; there are sum, product, min, max");
}

PerfOptions parse_perf_options(int argc, char** argv, std::string& help) {
  PerfOptions o;
  CLI::App app(
      "All-reduce on one host: time, algorithm and bus bandwidth by size, as nccl-tests prints "
      "them. Sizes: 8, 64K = 64KiB (powers of 1024), 64KB (powers of 1000).");
  std::string begin = "8", end = "256M", step = "0", dtype = "f32", op = "sum";
  int check = 1, pin = 1;
  app.add_option("-b,--minbytes", begin, "first size")->capture_default_str();
  app.add_option("-e,--maxbytes", end, "last size")->capture_default_str();
  app.add_option("-f,--stepfactor", o.factor, "each size times this")->capture_default_str();
  app.add_option("-i,--stepbytes", step, "each size plus this, instead of -f");
  app.add_option("-n,--iters", o.iterations, "samples that count")->capture_default_str();
  app.add_option("-w,--warmup_iters", o.warm_up, "samples before them")->capture_default_str();
  app.add_option("-c,--check", check, "verify results on fresh data")->capture_default_str();
  app.add_option("-d,--datatype", dtype, "f32, f64, f16, bf16, i32, i64, u8")
      ->capture_default_str();
  app.add_option("-o,--op", op, "sum, product, min, max")->capture_default_str();
  app.add_option("--ranks", o.ranks, "processes, unless started by a launcher")
      ->capture_default_str();
  app.add_option("--local", o.local, "this many threads instead of processes");
  app.add_flag("--plain", o.plain_memory, "buffers in plain memory, not the group's own");
  app.add_flag("--async", o.asynchronous, "time works of the group's queue");
  app.add_option("--pin", pin, "pin rank r to core r")->capture_default_str();
  app.add_option("--inject-error", o.inject_error, "falsify one element of this rank's results");
  app.add_option("--json", o.json, "write results to this file; - for stdout alone");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    help = app.help();
    return o;
  } catch (const CLI::ParseError& error) {
    throw Error(error.what());
  }
  o.begin = parse_size(begin);
  o.end = parse_size(end);
  o.step = parse_size(step);
  if (o.step > 0) o.factor = 0;
  o.check = check != 0;
  o.pin = pin != 0;
  o.dtype = parse_dtype(dtype);
  o.op = parse_reduce_op(op);
  if (o.ranks < 1 || o.local < 0 || o.iterations < 1 || o.warm_up < 0)
    throw Error("--ranks and -n must be at least 1, --local and -w not negative");
  return o;
}

}  // namespace lockstep::bench
