// Embedding on the CPU: copies of rows forward; backward one thread per table row.
#include "lockstep/kernels/embedding.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/rows.h"
#include "lockstep/kernels/simd.h"

namespace lockstep::kernels {
namespace {

std::vector<std::int64_t> checked_indices(const Tensor& indices, std::int64_t rows) {
  const Tensor c = indices.contiguous();
  std::vector<std::int64_t> out(static_cast<std::size_t>(c.numel()));
  switch (c.dtype()) {
    case kI64:
      std::copy_n(c.data<std::int64_t>(), out.size(), out.begin());
      break;
    case kI32:
      std::copy_n(c.data<std::int32_t>(), out.size(), out.begin());
      break;
    case kU8:
      std::copy_n(c.data<std::uint8_t>(), out.size(), out.begin());
      break;
    default:
      throw Error(fmt::format("embedding: indices must be i64, i32 or u8 but are {}", c.dtype()));
  }
  for (std::size_t j = 0; j < out.size(); ++j)
    LOCKSTEP_CHECK(out[j] >= 0 && out[j] < rows,
                   "embedding: index {} at position {} is outside the table's {} rows", out[j], j,
                   rows);
  return out;
}

}  // namespace

Tensor embedding_forward(const Tensor& given, const Tensor& indices) {
  LOCKSTEP_CHECK(given.dim() == 2, "embedding: table must be (rows, width) but has shape {}",
                 given.shape());
  require_cpu("embedding", {&given, &indices});
  const Tensor table = given.contiguous();
  const std::vector<std::int64_t> index = checked_indices(indices, table.shape()[0]);
  Shape shape = indices.shape();
  shape.push_back(table.shape()[1]);
  Tensor y = empty(shape, {table.dtype()});
  const std::size_t row_bytes = static_cast<std::size_t>(table.shape()[1]) * table.itemsize();
  if (row_bytes == 0) return y;
  const char* from = static_cast<const char*>(table.data());
  char* to = static_cast<char*>(y.data());
  parallel_for(static_cast<std::int64_t>(index.size()), row_grain(table.shape()[1]),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto j = static_cast<std::size_t>(begin); j < static_cast<std::size_t>(end);
                      ++j)
                   std::memcpy(to + j * row_bytes,
                               from + static_cast<std::size_t>(index[j]) * row_bytes, row_bytes);
               });
  return y;
}

Tensor embedding_backward(const Tensor& given_dy, const Tensor& indices, std::int64_t rows,
                          std::int64_t padding_idx) {
  const Tensor dy = given_dy.contiguous();
  const std::int64_t width = dy.shape().back();
  const std::vector<std::int64_t> index = checked_indices(indices, rows);
  // Positions by table row, in order of position within one row.
  std::vector<std::int64_t> order(index.size());
  std::iota(order.begin(), order.end(), 0);
  const auto row_of = [&](std::int64_t j) { return index[static_cast<std::size_t>(j)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return row_of(a) < row_of(b); });
  std::vector<std::size_t> first;  // where each used row's positions begin
  for (std::size_t i = 0; i < order.size(); ++i)
    if (i == 0 || row_of(order[i]) != row_of(order[i - 1])) first.push_back(i);
  first.push_back(order.size());

  Tensor dtable = zeros({rows, width}, {dy.dtype()});
  visit_floating(dy.dtype(), "embedding backward", [&]<class T>() {
    using A = Accumulator<T>;
    const T* from = dy.data<T>();
    parallel_for(
        static_cast<std::int64_t>(first.size()) - 1, row_grain(width),
        [&](std::int64_t begin, std::int64_t end) {
          std::vector<A> sum(static_cast<std::size_t>(width));
          for (auto u = static_cast<std::size_t>(begin); u < static_cast<std::size_t>(end); ++u) {
            const std::int64_t row = row_of(order[first[u]]);
            if (row == padding_idx) continue;
            std::fill(sum.begin(), sum.end(), A(0));
            T* to = dtable.data<T>() + row * width;
            run_simd([&]() LOCKSTEP_SIMD {
              for (std::size_t i = first[u]; i < first[u + 1]; ++i)
                for_each_vector<T>(width, [&](std::int64_t c, std::int64_t k) LOCKSTEP_SIMD {
                  store_at(sum.data(), c, k,
                           load_at(sum.data(), c, k) + load_at(from + order[i] * width, c, k));
                });
              for_each_vector<T>(width, [&](std::int64_t c, std::int64_t k) LOCKSTEP_SIMD {
                store_at(to, c, k, load_at(sum.data(), c, k));
              });
            });
          }
        });
  });
  return dtable;
}

}  // namespace lockstep::kernels
