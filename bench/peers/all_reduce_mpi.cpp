// All-reduce of the MPI library on this host, in place, f32: one JSON line per size.
//
//   mpirun -n 2 all_reduce_mpi [iterations [warm-up [size ...]]]
//
// The same sizes, samples and statistics as all_reduce_perf: median of the samples, slowest rank.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

int calls_per_sample(std::int64_t bytes) {
  if (bytes <= (4 << 10)) return 200;
  if (bytes <= (1 << 20)) return 20;
  return bytes <= (4 << 20) ? 4 : 1;
}

void sum_in_place(std::vector<float>& x) {
  MPI_Allreduce(MPI_IN_PLACE, x.data(), static_cast<int>(x.size()), MPI_FLOAT, MPI_SUM,
                MPI_COMM_WORLD);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int iterations = argc > 1 ? std::max(1, std::atoi(argv[1])) : 20;
  const int warm_up = argc > 2 ? std::max(0, std::atoi(argv[2])) : 3;
  std::vector<std::int64_t> sizes;
  for (int i = 3; i < argc; ++i) sizes.push_back(std::atoll(argv[i]));
  if (sizes.empty()) sizes = {8, 64 << 10, 1 << 20, 4 << 20, 64 << 20, 256 << 20};

  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  std::replace(version, version + length, '"', '\'');
  *std::find(version, version + length, ',') = 0;

  long long all_wrong = 0;
  for (const std::int64_t bytes : sizes) {
    std::vector<float> x(static_cast<std::size_t>(std::max<std::int64_t>(1, bytes / 4)));
    const int calls = calls_per_sample(bytes);
    std::vector<double> samples;
    for (int i = 0; i < warm_up + iterations; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      for (int call = 0; call < calls; ++call) sum_in_place(x);
      if (i >= warm_up) samples.push_back((MPI_Wtime() - begin) / calls);
    }
    double seconds = median(samples);
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    std::fill(x.begin(), x.end(), static_cast<float>(rank + 1));
    sum_in_place(x);
    const auto expected = static_cast<float>(ranks * (ranks + 1) / 2);
    long long wrong = std::count_if(x.begin(), x.end(), [&](float v) { return v != expected; });
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    all_wrong += wrong;
    if (rank != 0) continue;
    const double payload = static_cast<double>(x.size()) * 4;
    std::printf(
        "{\"peer\": \"mpi\", \"version\": \"%s\", \"op\": \"all_reduce\", \"dtype\": \"f32\", "
        "\"bytes\": %.0f, \"count\": %zu, \"ranks\": %d, \"in_place\": true, "
        "\"time_us\": %.3f, \"busbw_gb_per_s\": %.4f, \"samples\": %d, \"warm_up\": %d, "
        "\"wrong\": %lld}\n",
        version, payload, x.size(), ranks, seconds * 1e6,
        2.0 * (ranks - 1) / ranks * payload / seconds / 1e9, iterations, warm_up, wrong);
    std::fflush(stdout);
  }
  MPI_Finalize();
  return all_wrong == 0 ? 0 : 1;
}
