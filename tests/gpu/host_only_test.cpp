// Every op given tensors of a CUDA device, in all arguments or in one: it works there or is
// refused, and never reads the device's memory from the host.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/kernels/avg_pool2d.h"
#include "lockstep/kernels/batch_norm.h"
#include "lockstep/kernels/conv2d.h"
#include "lockstep/kernels/dropout.h"
#include "lockstep/kernels/embedding.h"
#include "lockstep/kernels/extremum.h"
#include "lockstep/kernels/index.h"
#include "lockstep/kernels/join.h"
#include "lockstep/kernels/layer_norm.h"
#include "lockstep/kernels/linear.h"
#include "lockstep/kernels/matmul.h"
#include "lockstep/kernels/max_pool2d.h"
#include "lockstep/kernels/moments.h"
#include "lockstep/kernels/mse_loss.h"
#include "lockstep/kernels/scale.h"
#include "lockstep/kernels/softmax.h"
#include "lockstep/kernels/sum.h"
#include "support/device.h"

namespace lockstep::kernels {
namespace {

struct Case {
  const char* name;
  std::vector<Tensor> arguments;  // on the CPU
  std::function<Tensor(const std::vector<Tensor>&)> call;
};

std::vector<Case> cases(DType dtype) {
  const auto some = [&](const Shape& shape) { return full(shape, 0.5, {dtype}); };
  const Tensor index = tensor<std::int64_t>({1, 0});
  const Tensor m = some({4, 4}), image = some({2, 3, 6, 6}), vector = some({4});
  using Args = std::vector<Tensor>;
  return {
      {"matmul", {m, m}, [](const Args& a) { return matmul_forward(a[0], a[1]); }},
      {"bmm",
       {some({2, 3, 3}), some({2, 3, 3})},
       [](const Args& a) { return bmm_forward(a[0], a[1]); }},
      {"linear", {m, m, vector}, [](const Args& a) { return linear_forward(a[0], a[1], a[2]); }},
      {"linear_backward_bias", {m}, [](const Args& a) { return linear_backward_bias(a[0]); }},
      {"conv2d",
       {image, some({4, 3, 3, 3}), vector},
       [](const Args& a) { return conv2d_forward(a[0], a[1], a[2], {}); }},
      {"max_pool2d", {image}, [](const Args& a) { return max_pool2d_forward(a[0], {}).y; }},
      {"avg_pool2d", {image}, [](const Args& a) { return avg_pool2d_forward(a[0], {}); }},
      {"batch_norm_moments", {image}, [](const Args& a) { return batch_norm_moments(a[0]).mean; }},
      {"layer_norm",
       {m, vector, vector},
       [](const Args& a) { return layer_norm_forward(a[0], 1, a[1], a[2], 1e-5).y; }},
      {"embedding", {m, index}, [](const Args& a) { return embedding_forward(a[0], a[1]); }},
      {"embedding_backward",
       {some({2, 4}), index},
       [](const Args& a) { return embedding_backward(a[0], a[1], 4, -1); }},
      {"sum", {m}, [](const Args& a) { return sum(a[0]); }},
      {"sum_rows", {m}, [](const Args& a) { return sum(a[0], {0}); }},
      {"mean", {m}, [](const Args& a) { return mean(a[0]); }},
      {"var", {m}, [](const Args& a) { return var(a[0]); }},
      {"norm", {m}, [](const Args& a) { return norm(a[0]); }},
      {"amax", {m}, [](const Args& a) { return amax(a[0]); }},
      {"max_along", {m}, [](const Args& a) { return max_along(a[0], 1).values; }},
      {"index_select", {m, index}, [](const Args& a) { return index_select(a[0], 0, a[1]); }},
      {"sort", {m}, [](const Args& a) { return sort(a[0], 1, false).values; }},
      {"cat", {m, m}, [](const Args& a) { return cat(a, 0); }},
      {"pad",
       {m},
       [](const Args& a) {
         return pad(a[0], {1, 1, 1, 1}, 0);
       }},
      {"mse_loss",
       {m, m},
       [](const Args& a) { return mse_loss_forward(a[0], a[1], Reduction::kMean); }},
      {"dropout", {m}, [](const Args& a) { return dropout_forward(a[0], 0.5, {}); }},
      {"scale_",
       {m.clone()},
       [](const Args& a) {
         scale_(a[0], 2);
         return a[0];
       }},
  };
}

// What became of it; a crash is what the test is about.
std::string outcome(const Case& c, const std::vector<Tensor>& arguments) {
  try {
    return c.call(arguments).device().is_cuda() ? "works" : "result on the CPU";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(HostOnly, OpsRefuseWhatTheyCannotDo) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device, real or virtual";
  for (DType dtype : {kF32, kBF16}) {
    for (const Case& c : cases(dtype)) {
      SCOPED_TRACE(std::string(c.name) + " " + std::string(dtype_name(dtype)));
      std::vector<Tensor> there;
      for (const Tensor& x : c.arguments) there.push_back(x.to(cuda_device()));
      const std::string all = outcome(c, there);
      EXPECT_NE(all, "result on the CPU") << c.name;
      EXPECT_TRUE(all == "works" || all.find("cuda:0") != std::string::npos)
          << c.name << " says: " << all;
      if (there.size() < 2) continue;
      for (std::size_t k = 0; k < there.size(); ++k) {
        std::vector<Tensor> mixed = there;
        mixed[k] = c.arguments[k];
        const std::string said = outcome(c, mixed);
        EXPECT_TRUE(said.find("cuda:0") != std::string::npos)
            << c.name << ", argument " << k << " on the CPU, says: " << said;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
