#include "lockstep/autograd/ops/embedding.h"

#include "autograd/reference_case.h"
#include "lockstep/autograd/gradcheck.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/embedding.h"

namespace lockstep {
namespace {

using namespace testing;

TEST(Embedding, MatchesPyTorch) {
  const Reference reference("losses");
  for (const auto& dtype : kFloatingNames)
    check_case(reference, "embedding/" + dtype, {"w"}, tolerance_of(dtype),
               [&](const auto& v) { return embedding(v[0], reference["embedding/indices"], 5); });
}

TEST(Embedding, GradientsMatchFiniteDifferences) {
  const Tensor w = tensor<double>({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  const Tensor indices = tensor<std::int64_t>({3, 0, 3, 1}, {2, 2});
  EXPECT_EQ(gradcheck([&](const auto& v) { return embedding(v[0], indices); }, {w}), "");
}

TEST(Embedding, PaddingRowGetsNoGradient) {
  const Variable w(ones({3, 2}), true);
  embedding(w, tensor<std::int32_t>({2, 0, 2}), -1).backward(ones({3, 2}));
  EXPECT_SAME_BITS(w.grad(), tensor<float>({1, 1, 0, 0, 0, 0}, {3, 2}));
}

TEST(Embedding, HalfGradientsAreSummedInFullPrecision) {
  const Variable w(zeros({2, 3}, {kF16}), true);
  embedding(w, zeros({3000}, {kI64})).backward(ones({3000, 3}, {kF16}));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(element(w.grad(), i), i < 3 ? 3000 : 0);
}

TEST(Embedding, EveryIndexDtypeShapeAndTableDtype) {
  const Tensor table = tensor<std::uint8_t>({1, 2, 3, 4, 5, 6}, {3, 2});
  EXPECT_SAME_BITS(embedding(table, tensor<std::uint8_t>({2, 0})).data(),
                   tensor<std::uint8_t>({5, 6, 1, 2}, {2, 2}));
  EXPECT_SAME_BITS(embedding(table, tensor<std::int64_t>({1}, {})).data(),
                   tensor<std::uint8_t>({3, 4}));
  EXPECT_SAME_BITS(embedding(table.t(), tensor<std::int64_t>({1})).data(),
                   tensor<std::uint8_t>({2, 4, 6}, {1, 3}));
}

TEST(Embedding, EmptyTensors) {
  const Variable w(ones({3, 2}), true);
  embedding(w, zeros({0, 4}, {kI64})).backward(zeros({0, 4, 2}));
  EXPECT_SAME_BITS(w.grad(), zeros({3, 2}));
  const Variable narrow(ones({3, 0}), true);
  embedding(narrow, zeros({5}, {kI64})).backward(zeros({5, 0}));
  EXPECT_EQ(narrow.grad().shape(), (Shape{3, 0}));
}

TEST(Embedding, SameBitsForAnyNumberOfThreads) {
  Tensor dy = empty({20000, 33});
  Tensor indices = empty({20000}, {kI64});
  for (std::int64_t i = 0; i < dy.numel(); ++i)
    dy.data<float>()[i] = static_cast<float>((i * 7919) % 1013) / 100;
  for (std::int64_t i = 0; i < 20000; ++i) indices.data<std::int64_t>()[i] = (i * 31) % 1999;
  const int before = num_threads();
  set_num_threads(1);
  const Tensor one = kernels::embedding_backward(dy, indices, 2000, -1);
  set_num_threads(4);
  EXPECT_SAME_BITS(kernels::embedding_backward(dy, indices, 2000, -1), one);
  set_num_threads(before);
}

TEST(Embedding, Errors) {
  const std::string range = error_of([] {
    embedding(zeros({4, 2}), tensor<std::int64_t>({0, 1, 4}));
  });
  for (const char* part : {"index 4", "position 2", "4 rows"})
    EXPECT_NE(range.find(part), std::string::npos) << range;
  EXPECT_NE(error_of([] { embedding(zeros({4, 2}), zeros({2})); }).find("f32"), std::string::npos);
  EXPECT_NE(error_of([] { embedding(zeros({4}), zeros({2}, {kI64})); }).find("(4,)"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              embedding(zeros({4, 2}), zeros({2}, {kI64}), 4);
            }).find("padding_idx 4"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
