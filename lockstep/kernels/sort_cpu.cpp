// sort and topk of index.h.
#include <algorithm>
#include <numeric>
#include <vector>

#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/index.h"
#include "lockstep/kernels/rows.h"

namespace lockstep::kernels {
namespace {

// A strict order in which NaN is the greatest.
template <class A>
bool below(A a, A b) {
  return a < b || (a == a && b != b);
}

template <class T>
void sort_row(const T* x, std::int64_t n, std::int64_t k, bool descending, T* values,
              std::int64_t* indices) {
  using A = std::conditional_t<is_floating(kDTypeOf<T>), Accumulator<T>, T>;
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  // The index decides between equals: partial_sort is stable then too.
  const auto first = [&](std::int64_t i, std::int64_t j) {
    const A a = static_cast<A>(x[i]), b = static_cast<A>(x[j]);
    if (descending ? below(b, a) : below(a, b)) return true;
    if (descending ? below(a, b) : below(b, a)) return false;
    return i < j;
  };
  std::partial_sort(order.begin(), order.begin() + k, order.end(), first);
  for (std::int64_t i = 0; i < k; ++i) {
    indices[i] = order[static_cast<std::size_t>(i)];
    values[i] = x[indices[i]];
  }
}

ValuesAndIndices first_k(const Tensor& x, std::int64_t k, int axis, bool descending) {
  if (x.dim() == 0) {
    ValuesAndIndices y = first_k(x.unsqueeze(0), k, 0, descending);
    return {y.values.view({}), y.indices.view({})};
  }
  const Tensor rows = to_rows(x, axis);
  const std::int64_t n = x.shape()[axis], count = n == 0 ? 0 : x.numel() / n;
  Shape shape = rows.shape();
  shape[shape.rank() - 1] = k;
  Tensor values = empty(shape, {x.dtype()}), indices = empty(shape, {kI64});
  visit_dtype(x.dtype(), [&]<class T>() {
    parallel_for(count, row_grain(n), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t r = first; r < last; ++r)
        sort_row(rows.data<T>() + r * n, n, k, descending, values.data<T>() + r * k,
                 indices.data<std::int64_t>() + r * k);
    });
  });
  Shape out = x.shape();
  out[axis] = k;
  const Tensor like = empty(out, {x.dtype()});
  return {from_rows(values, axis, like), from_rows(indices, axis, empty_like(like, kI64))};
}

}  // namespace

ValuesAndIndices sort(const Tensor& x, std::int64_t axis, bool descending) {
  const int a = normalize_axis(axis, x.dim(), "sort");
  return first_k(x, x.dim() == 0 ? 1 : x.shape()[a], a, descending);
}

ValuesAndIndices topk(const Tensor& x, std::int64_t k, std::int64_t axis, bool largest) {
  const int a = normalize_axis(axis, x.dim(), "topk");
  const std::int64_t n = x.dim() == 0 ? 1 : x.shape()[a];
  LOCKSTEP_CHECK(k >= 0 && k <= n, "topk: {} of the {} elements of axis {} of {} asked for", k, n,
                 a, x.shape());
  return first_k(x, k, a, largest);
}

}  // namespace lockstep::kernels
