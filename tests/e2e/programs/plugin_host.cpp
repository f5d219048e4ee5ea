// Loads and unloads a plugin again and again: plugin_host <plugin> <cycles> <shutdown: 0 or 1>.
// Prints "<right sums> <threads at most while loaded> <threads at the end>".
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace {

int live_threads() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("Threads:", 0) == 0) return std::stoi(line.substr(8));
  return -1;
}

// A thread that has been joined is counted until the kernel has put it away.
int threads_left() {
  for (int i = 0; i < 100 && live_threads() > 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return live_threads();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int cycles = std::atoi(argv[2]);
  const bool shuts_down = std::atoi(argv[3]) != 0;
  int right = 0, most = 0, after = 1;
  for (int i = 0; i < cycles; ++i) {
    void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    const auto sum =
        reinterpret_cast<double (*)(std::int64_t)>(dlsym(plugin, "plugin_sum_of_ones"));
    const auto shutdown = reinterpret_cast<void (*)()>(dlsym(plugin, "plugin_shutdown"));
    if (!sum || !shutdown) return 1;
    right += sum(1'000'000) == 1e6;
    most = std::max(most, live_threads());
    if (shuts_down) shutdown();
    dlclose(plugin);
    if (shuts_down) after = std::max(after, threads_left());
  }
  std::printf("%d %d %d\n", right, most, after);
}
