// Runs the virtual GPU's launches as the PTX that nvcc made of the kernels, with ptxrun's checks: a
// second witness, which shares neither compiler nor memory checks with the virtual GPU.
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ptx/ptx_modules.h"
#include "ptx/ptx_stats.h"
#include "ptxrun.h"
#include "vgpu/include/vgpu/executor.h"

namespace lockstep::testing {
namespace {

// ptxrun has memory of its own: what a kernel may touch goes there before and comes back after it.
class MirroredMemory {
 public:
  MirroredMemory(ptxrun::Sim& sim, const vgpu::ExecutorLaunch& launch)
      : sim_(sim), memory_at_(launch.memory_at) {}
  ~MirroredMemory() {
    for (const auto& [begin, copy] : copies_) sim_.free(copy.address);
  }
  MirroredMemory(const MirroredMemory&) = delete;
  MirroredMemory& operator=(const MirroredMemory&) = delete;

  // The argument with its pointers turned into ptxrun's. Parameters that are structs hold theirs at
  // multiples of 8 bytes; no number that a kernel gets looks like an address of the virtual GPU.
  std::vector<std::uint8_t> translate(std::span<const std::byte> argument) {
    std::vector<std::uint8_t> bytes(argument.size());
    std::memcpy(bytes.data(), argument.data(), bytes.size());
    for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, &bytes[i], 8);
      // An end of a range may lie behind its allocation.
      auto memory = memory_at_(reinterpret_cast<const void*>(word));
      if (!memory && word != 0) memory = memory_at_(reinterpret_cast<const void*>(word - 1));
      if (!memory) continue;
      word = word - reinterpret_cast<std::uint64_t>(memory->begin) + copy_of(*memory);
      std::memcpy(&bytes[i], &word, 8);
    }
    return bytes;
  }

  // What the kernel changed, and what nobody has written yet: work of other streams may have
  // changed the rest of an allocation meanwhile.
  void copy_back() {
    for (auto& [begin, copy] : copies_) {
      std::vector<std::byte> after(copy.memory.bytes);
      sim_.read(after.data(), copy.address, after.size());
      for (std::size_t i = 0; i < after.size(); ++i)
        if (after[i] != copy.before[i] || copy.memory.written[i] == 0)
          copy.memory.begin[i] = after[i];
      std::memset(copy.memory.written, 1, after.size());
    }
  }

 private:
  struct Copy {
    vgpu::DeviceMemory memory;
    std::uint64_t address = 0;
    std::vector<std::byte> before;  // as ptxrun has it
  };

  std::uint64_t copy_of(const vgpu::DeviceMemory& memory) {
    const auto [at, is_new] = copies_.try_emplace(memory.begin);
    if (!is_new) return at->second.address;
    at->second = {memory, sim_.alloc(memory.bytes, "allocation"),
                  std::vector<std::byte>(memory.bytes)};
    // Bytes that nobody has written stay so.
    for (std::size_t i = 0; i < memory.bytes;) {
      std::size_t end = i;
      while (end < memory.bytes && (memory.written[end] != 0) == (memory.written[i] != 0)) ++end;
      if (memory.written[i] != 0) sim_.write(at->second.address + i, memory.begin + i, end - i);
      i = end;
    }
    sim_.read(at->second.before.data(), at->second.address, memory.bytes);
    return at->second.address;
  }

  ptxrun::Sim& sim_;
  std::optional<vgpu::DeviceMemory> (*memory_at_)(const void*);
  std::map<std::byte*, Copy> copies_;
};

class PtxExecutor {
 public:
  explicit PtxExecutor(std::uint64_t seed) : modules_(folder()), sim_(options(seed)) {}

  void run(const vgpu::ExecutorLaunch& launch) {
    const PtxModules::Entry& entry = modules_.find(launch.symbol);
    if (loaded_.insert(entry.file).second) sim_.load(entry.file);
    MirroredMemory memory(sim_, launch);
    std::vector<ptxrun::Arg> arguments;
    for (const auto argument : launch.arguments)
      arguments.push_back(ptxrun::Arg::raw(memory.translate(argument)));
    const ptxrun::Result result = sim_.launch(
        entry.symbol, {launch.grid.x, launch.grid.y, launch.grid.z},
        {launch.block.x, launch.block.y, launch.block.z}, launch.dynamic_shared, arguments);
    if (!result.ok || !result.races.empty()) throw std::runtime_error(result.summary());
    memory.copy_back();
    ++stats_.launches;
    stats_.global_requests += result.stats.globalRequests;
    stats_.global_sectors += result.stats.globalSectors;
    stats_.shared_requests += result.stats.sharedRequests;
    stats_.shared_wavefronts += result.stats.sharedWavefronts;
    stats_.symbols.insert(entry.symbol);
  }

  PtxStats take_stats() { return std::exchange(stats_, {}); }

 private:
  static std::string folder() {
    const char* const value = std::getenv("LOCKSTEP_PTX_FOLDER");
    if (value == nullptr) throw std::runtime_error("LOCKSTEP_PTX_FOLDER is not set");
    return value;
  }

  // Races between blocks are left to the virtual GPU, which tells bytes of one word apart.
  static ptxrun::Options options(std::uint64_t seed) {
    ptxrun::Options options;
    options.seed = seed;
    options.strictShfl = true;
    options.strictExitBarrier = true;
    options.strictAlign = true;
    options.stats = std::getenv("LOCKSTEP_PTX_STATS") != nullptr;
    options.quiet = true;
    return options;
  }

  PtxModules modules_;
  ptxrun::Sim sim_;
  std::set<std::string> loaded_;
  PtxStats stats_;
};

PtxExecutor* the_executor = nullptr;

}  // namespace
}  // namespace lockstep::testing

extern "C" vgpu::KernelExecutor* make_kernel_executor(std::uint64_t seed) {
  auto* const executor = new lockstep::testing::PtxExecutor(seed);
  lockstep::testing::the_executor = executor;
  return new vgpu::KernelExecutor(
      [executor](const vgpu::ExecutorLaunch& launch) { executor->run(launch); });
}

extern "C" void take_ptx_stats(lockstep::testing::PtxStats* stats) {
  const auto executor = lockstep::testing::the_executor;  // made with the first launch
  *stats = executor ? executor->take_stats() : lockstep::testing::PtxStats();
}
