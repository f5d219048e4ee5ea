#include <algorithm>
#include <vector>

#include "lockstep/core/threads.h"
#include "lockstep/kernels/accumulate.h"
#include "lockstep/kernels/conv2d_plan.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/onednn.h"

namespace lockstep::kernels {
namespace {

using onednn::ConvDirection;

// Note [fixed pieces]: left to its own, oneDNN divides sums over images by the number of threads.
// In deterministic mode it gets pieces of the batch whose number depends on the batch only, one
// thread each, and sums over pieces are added in their order.
struct Pieces {
  std::int64_t count, images;  // the last piece may be shorter
};

Pieces pieces_of(std::int64_t n) {
  if (!deterministic()) return {1, n};
  constexpr std::int64_t kImages = 16, kMost = 8;
  const std::int64_t wanted = std::clamp<std::int64_t>(n / kImages, 1, kMost);
  const std::int64_t images = (n + wanted - 1) / wanted;
  return {(n + images - 1) / images, images};
}

onednn::Conv describe(const ConvPlan& p, DType dtype, bool bias, bool relu, std::int64_t n) {
  onednn::Conv conv{.dtype = dtype,
                    .bias = bias,
                    .relu = relu,
                    .n = n,
                    .groups = p.groups,
                    .ic = p.ic,
                    .ih = p.ih,
                    .iw = p.iw,
                    .oc = p.oc,
                    .oh = p.oh,
                    .ow = p.ow,
                    .kh = p.kh,
                    .kw = p.kw,
                    .stride = {p.stride[0], p.stride[1]},
                    .padding = {p.padding[0], p.padding[1]},
                    .dilation = {p.dilation[0], p.dilation[1]},
                    .threads = deterministic() ? 1 : num_threads()};
  return conv;
}

const char* at(const Tensor& t, std::int64_t elements) {
  return static_cast<const char*>(t.data()) + elements * static_cast<std::int64_t>(t.itemsize());
}
char* at_mutable(const Tensor& t, std::int64_t elements) {
  return static_cast<char*>(t.data()) + elements * static_cast<std::int64_t>(t.itemsize());
}

// The two descriptions that a batch's pieces have.
struct PieceConvs {
  Pieces pieces;
  onednn::Conv whole, last;

  PieceConvs(const ConvPlan& p, DType dtype, bool bias, bool relu)
      : pieces(pieces_of(p.n)),
        whole(describe(p, dtype, bias, relu, pieces.images)),
        last(describe(p, dtype, bias, relu, p.n - (pieces.count - 1) * pieces.images)) {}

  bool supported(ConvDirection direction) const {
    return onednn::supports(whole, direction) && onednn::supports(last, direction);
  }
  const onednn::Conv& operator[](std::int64_t i) const {
    return i + 1 == pieces.count ? last : whole;
  }
};

// Calls f(i, conv, packed weights) for each piece.
template <class F>
void for_each_piece(const PieceConvs& convs, ConvDirection direction, const Tensor& w, const F& f) {
  const Tensor packed = onednn::pack_weights(convs.whole, direction, w);
  const Tensor packed_last = onednn::same_weights(convs.whole, convs.last, direction)
                                 ? packed
                                 : onednn::pack_weights(convs.last, direction, w);
  parallel_for(convs.pieces.count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      f(i, convs[i], i + 1 == convs.pieces.count ? packed_last : packed);
  });
}

bool has_kernels(DType dtype) { return dtype == kF32 || dtype == kBF16; }

}  // namespace

bool conv2d_library_forward(const ConvPlan& p, const Tensor& x, const Tensor& w, const Tensor& b,
                            bool relu, const Tensor& y) {
  require_cpu("conv2d", {&x, &w, &b, &y});
  if (!has_kernels(x.dtype())) return false;
  const PieceConvs convs(p, x.dtype(), b.defined(), relu);
  if (!convs.supported(ConvDirection::kForward)) return false;
  for_each_piece(convs, ConvDirection::kForward, w,
                 [&](std::int64_t i, const onednn::Conv& conv, const Tensor& packed) {
                   const std::int64_t first = i * convs.pieces.images;
                   onednn::conv_forward(conv, at(x, first * p.x_image()), packed,
                                        b.defined() ? b.data() : nullptr,
                                        at_mutable(y, first * p.y_image()));
                 });
  return true;
}

bool conv2d_library_backward_data(const ConvPlan& p, const Tensor& dy, const Tensor& w,
                                  const Tensor& dx) {
  require_cpu("conv2d backward", {&dy, &w, &dx});
  if (!has_kernels(dy.dtype())) return false;
  const PieceConvs convs(p, dy.dtype(), false, false);
  if (!convs.supported(ConvDirection::kBackwardData)) return false;
  for_each_piece(convs, ConvDirection::kBackwardData, w,
                 [&](std::int64_t i, const onednn::Conv& conv, const Tensor& packed) {
                   const std::int64_t first = i * convs.pieces.images;
                   onednn::conv_backward_data(conv, at(dy, first * p.y_image()), packed,
                                              at_mutable(dx, first * p.x_image()));
                 });
  return true;
}

bool conv2d_library_backward_weights(const ConvPlan& p, const Tensor& dy, const Tensor& x,
                                     const Tensor& dw, const Tensor& db) {
  require_cpu("conv2d backward", {&dy, &x, &dw, &db});
  if (!has_kernels(x.dtype())) return false;
  const PieceConvs convs(p, x.dtype(), db.defined(), false);
  if (!convs.supported(ConvDirection::kBackwardWeights)) return false;
  const std::int64_t count = convs.pieces.count;
  const auto piece = [&](std::int64_t i, const Tensor& dw_i, const Tensor& db_i) {
    const std::int64_t first = i * convs.pieces.images;
    onednn::conv_backward_weights(convs[i], at(x, first * p.x_image()), at(dy, first * p.y_image()),
                                  dw_i.data<float>(),
                                  db_i.defined() ? db_i.data<float>() : nullptr);
  };
  // As many pieces at a time as there are threads, so that one thread needs one buffer.
  const std::int64_t together =
      in_parallel_region() ? 1 : std::min<std::int64_t>(num_threads(), count);
  std::vector<Tensor> dws(together), dbs(together);
  for (std::int64_t base = 0; base < count; base += together) {
    const std::int64_t some = std::min(together, count - base);
    for (std::int64_t i = 0; i < some; ++i) {
      const bool first = base + i == 0;
      if (first || (base == together && i == 0) || !dws[i].defined()) {
        dws[i] = first ? dw : empty(dw.shape());
        if (db.defined()) dbs[i] = first ? db : empty(db.shape());
      }
    }
    parallel_for(some, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) piece(base + i, dws[i], dbs[i]);
    });
    for (std::int64_t i = 0; i < some; ++i) {
      if (base + i == 0) continue;
      accumulate(dw, dws[i]);
      if (db.defined()) accumulate(db, dbs[i]);
    }
  }
  return true;
}

}  // namespace lockstep::kernels
