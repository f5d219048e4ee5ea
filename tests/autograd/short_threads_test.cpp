// What caller threads, varying sizes and many shapes leave behind: nothing that grows.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "lockstep/autograd/ops/activation.h"
#include "lockstep/autograd/ops/conv2d.h"
#include "lockstep/autograd/ops/linear.h"
#include "lockstep/core/allocator.h"
#include "lockstep/core/config.h"
#if LOCKSTEP_WITH_ONEDNN
#include "lockstep/kernels/onednn.h"
#endif

namespace lockstep {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // keeps freed memory
#else
constexpr bool kSanitized = false;
#endif

double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  long total = 0, resident = 0;
  statm >> total >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE)) / (1 << 20);
}

int live_threads() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("Threads:", 0) == 0) return std::stoi(line.substr(8));
  return -1;
}

void train_once(DType dtype) {
  const auto parameter = [&](const Shape& shape) {
    return Variable(ones(shape, {.dtype = dtype}), true);
  };
  const Variable x(ones({4, 256}, {.dtype = dtype}));
  const Variable w1 = parameter({256, 256}), b1 = parameter({256});
  const Variable w2 = parameter({10, 256}), b2 = parameter({10});
  const Variable y = linear(linear_relu(x, w1, b1), w2, b2);
  y.backward(ones({4, 10}, {.dtype = dtype}));
  const Variable k = parameter({4, 2, 3, 3});
  conv2d(Variable(ones({1, 2, 6, 6}, {.dtype = dtype})), k)
      .backward(ones({1, 4, 4, 4}, {.dtype = dtype}));
}

// pytorch/pytorch#24237
TEST(ShortLivedThreads, LeaveNothingBehind) {
  double early = 0;
  for (int i = 0; i < 2000; ++i) {
    std::thread([&] { train_once(i % 2 ? kF32 : kBF16); }).join();
    if (i == 199) early = resident_mib();
  }
  if (!kSanitized) {
    EXPECT_LT(resident_mib() - early, 5);
  }
  EXPECT_LE(live_threads(), 2);  // this one, and the pool of its own if other tests started it
}

// pytorch/pytorch#25646
TEST(VaryingSizes, MemoryStopsGrowing) {
  CpuAllocator& allocator = CpuAllocator::instance();
  allocator.empty_cache();
  const Variable w(ones({8, 3, 3, 3}), true), v(ones({16, 64}), true);
  const int sizes[] = {64, 97, 150, 222, 301, 420, 555, 700, 866, 1024};
  std::uint64_t early = 0;
  for (int cycle = 1; cycle <= 200; ++cycle) {
    for (int n : sizes) {
      conv2d(Variable(ones({n / 64, 3, 8, 8})), w).backward(ones({n / 64, 8, 6, 6}));
      linear(Variable(ones({n, 64})), v).backward(ones({n, 16}));
      w.grad();
    }
    if (cycle == 3) early = allocator.stats().reserved;
  }
  EXPECT_LE(static_cast<double>(allocator.stats().reserved), 1.01 * static_cast<double>(early));
  EXPECT_GT(allocator.empty_cache(), 0u);
}

#if LOCKSTEP_WITH_ONEDNN
TEST(VaryingSizes, TheCacheOfPrimitivesIsBounded) {
  namespace onednn = kernels::onednn;
  onednn::release_thread_cache();
  EXPECT_EQ(onednn::cached_primitives(), 0u);
  const Tensor w = ones({2, 1, 1, 1});
  for (int i = 1; i <= static_cast<int>(onednn::kCacheCapacity) + 40; ++i)
    kernels::conv2d_forward(ones({1, 1, i, 1}), w, {});
  EXPECT_EQ(onednn::cached_primitives(), onednn::kCacheCapacity);
  onednn::release_thread_cache();
  EXPECT_EQ(onednn::cached_primitives(), 0u);
}
#endif

}  // namespace
}  // namespace lockstep
