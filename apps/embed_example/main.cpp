// A training program of one's own: a small net learns y = sin(x) by data parallelism.
//
//   embed_example                                    one process
//   lockstep-run --nproc-per-node 2 embed_example    two ranks
#include <cmath>
#include <cstdio>
#include <exception>

#include "lockstep/lockstep.h"

namespace ls = lockstep;

// The net is the program's own; names and options are those of PyTorch's C++ front end.
struct SineNetImpl : ls::nn::Module {
  SineNetImpl() {
    hidden = register_module("hidden", ls::nn::Linear(1, 64));
    out = register_module("out", ls::nn::Linear(64, 1));
  }
  ls::Variable forward(const ls::Variable& x) { return out(ls::tanh(hidden(x))); }

  ls::nn::Linear hidden{nullptr}, out{nullptr};
};
LOCKSTEP_MODULE(SineNet);

// `n` points of this rank's share of [-3, 3), and their sines.
std::pair<ls::Tensor, ls::Tensor> points(std::int64_t n, int rank, int world) {
  ls::Tensor x = ls::empty({n, 1}), y = ls::empty({n, 1});
  for (std::int64_t i = 0; i < n; ++i) {
    const float at = -3 + 6 * static_cast<float>(i * world + rank) / static_cast<float>(n * world);
    x.data<float>()[i] = at;
    y.data<float>()[i] = std::sin(at);
  }
  return {x, y};
}

int main() try {
  // Where this process stands in its job: the launcher's environment, or a world of one.
  const ls::dist::Environment environment = ls::dist::read_environment();
  auto group = ls::dist::make_process_group(environment.world_size > 1 ? "shm" : "local",
                                            ls::dist::open_store(environment), environment.rank,
                                            environment.world_size);
  ls::manual_seed(42);
  SineNet net;
  ls::dist::DistributedDataParallel<SineNet> ddp(net, group);
  ls::optim::Adam optimizer(net->parameters(), ls::optim::AdamOptions(0.01));
  const auto [x, y] = points(128, group->rank(), group->size());

  double loss_value = 0;
  for (int step = 0; step < 500; ++step) {
    const ls::Variable loss = ls::mse_loss(ddp(x), y);
    optimizer.zero_grad();
    loss.backward();  // gradients are averaged over all ranks when this returns
    optimizer.step();
    loss_value = loss.item();
  }
  if (group->rank() == 0)
    std::printf("loss after 500 steps on %d rank(s): %.6f\n", group->size(), loss_value);
  return loss_value < 1e-3 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "embed_example: %s\n", e.what());
  return 1;
}
