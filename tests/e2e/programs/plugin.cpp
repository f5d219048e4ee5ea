// A plugin that holds the library inside.
#include "lockstep/core/threads.h"
#include "lockstep/kernels/sum.h"

extern "C" double plugin_sum_of_ones(std::int64_t n) {
  lockstep::set_num_threads(4);
  const lockstep::Tensor ones = lockstep::ones({n});
  // Its own loop too, so that several threads run whatever grain the sum chooses.
  lockstep::parallel_for(n, 1000, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) ones.data<float>()[i] += 0;
  });
  return lockstep::kernels::sum(ones).item();
}

extern "C" void plugin_shutdown() { lockstep::shutdown(); }
