// DistributedDataParallel: a module whose gradients are averaged over all ranks.
//
//   Net net;
//   dist::DistributedDataParallel<Net> ddp(net, group);
//   optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1));
//   loss_of(ddp(x)).backward();   // gradients are averaged when this returns
//   optimizer.step();
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/core/generator.h"
#include "lockstep/dist/data_parallel.h"
#include "lockstep/dist/process_group.h"

namespace lockstep::dist {

// Model is a module holder or a shared_ptr to a module: model->named_parameters(),
// model->named_buffers(), model->is_training(), model->forward(…) returning a Variable or a
// std::vector of them. Higher-order gradients are not synchronised.
template <class Model>
class DistributedDataParallel {
 public:
  // Collective: verifies that all ranks have the same model (or throws Error on every rank naming
  // the first difference) and gives all of them rank 0's values. The calling thread's generator
  // takes its rank as stream, so that dropout differs between ranks while everything else drawn
  // does not.
  DistributedDataParallel(Model model, std::shared_ptr<ProcessGroup> group,
                          const DdpOptions& options = {})
      : model_(std::move(model)),
        state_(std::make_unique<DataParallel>(trainable(model_), buffer_values(model_), group,
                                              options)) {
    default_generator().set_stream(static_cast<std::uint64_t>(group->rank()));
  }

  template <class... Args>
  auto operator()(Args&&... args) {
    return forward(std::forward<Args>(args)...);
  }
  template <class... Args>
  auto forward(Args&&... args) {
    const bool training = model_->is_training();
    state_->begin_forward(training);
    auto y = model_->forward(std::forward<Args>(args)...);
    state_->end_forward(as_span(y), training);
    return y;
  }

  // Gradients only add up on this rank while the returned guard lives.
  DataParallel::NoSync no_sync() { return DataParallel::NoSync(*state_); }
  // Collective: reduces what was added up under no_sync().
  void sync_gradients() { state_->sync_gradients(); }

  // Runs body() with ranks that may have different numbers of steps: ranks that are through go on
  // with zeros until all are. divide_by_initial_world_size: gradients are divided by the number of
  // all ranks, else by that of the ranks that still have data.
  template <class F>
  void join(F&& body, bool divide_by_initial_world_size = true) {
    state_->begin_join(divide_by_initial_world_size);
    std::forward<F>(body)();
    state_->finish_join();
  }

  Model& module() { return model_; }
  Reducer& reducer() { return state_->reducer(); }
  DataParallel& state() { return *state_; }
  ProcessGroup& group() { return state_->group(); }

 private:
  static std::vector<NamedParameter> trainable(Model& model) {
    std::vector<NamedParameter> parameters;
    for (auto& [name, variable] : model->named_parameters())
      if (variable.requires_grad()) parameters.push_back({name, variable});
    return parameters;
  }
  static std::vector<Tensor> buffer_values(Model& model) {
    std::vector<Tensor> buffers;
    for (auto& [name, buffer] : model->named_buffers()) buffers.push_back(tensor_of(buffer));
    return buffers;
  }
  static const Tensor& tensor_of(const Variable& v) { return v.data(); }
  static const Tensor& tensor_of(const Tensor& t) { return t; }
  static std::span<const Variable> as_span(const Variable& y) { return {&y, 1}; }
  static std::span<const Variable> as_span(const std::vector<Variable>& y) { return y; }

  Model model_;
  std::unique_ptr<DataParallel> state_;
};

}  // namespace lockstep::dist
