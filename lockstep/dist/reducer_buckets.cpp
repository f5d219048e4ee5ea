// The reducer's buckets: laid out in reverse order of registration at first, then once more in the
// order in which gradients really arrive.
#include "lockstep/core/check.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/dist/reducer.h"

namespace lockstep::dist {

void Reducer::build_buckets(const std::vector<std::size_t>& order) {
  std::vector<std::size_t> bytes;
  std::vector<DType> dtypes;
  for (const NamedParameter& p : parameters_) {
    bytes.push_back(p.variable.data().nbytes());
    dtypes.push_back(p.variable.dtype());
  }
  std::vector<Bucket> buckets;
  std::vector<Place> places(parameters_.size());
  for (std::vector<std::size_t>& members : plan_buckets(bytes, dtypes, options_.caps, order)) {
    for (std::size_t m = 0; m < members.size(); ++m) places[members[m]] = {buckets.size(), m};
    buckets.emplace_back(static_cast<int>(buckets.size()), std::move(members), parameters_,
                         *group_);
  }
  buckets_ = std::move(buckets);
  places_ = std::move(places);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].variable.set_grad_buffer(view_of(i));
    if (parameters_[i].variable.grad().defined()) adopt_view(i);
  }
}

void Reducer::rebuild_if_due() {
  if (rebuilt_ || step_ == 0 || options_.find_unused_parameters) return;
  rebuilt_ = true;
  // A rank that has only shadowed others has seen no order; the layout in use is as good as any.
  if (arrival_.size() != parameters_.size()) arrival_ = reverse_order(parameters_.size());
  std::vector<std::int64_t> order(arrival_.begin(), arrival_.end());
  group_->broadcast(span_of(order), 0, Tag{step_, -1})->wait();
  build_buckets({order.begin(), order.end()});
  arrival_.clear();
}

const Tensor& Reducer::view_of(std::size_t parameter) const {
  const Place place = places_[parameter];
  return buckets_[place.bucket].view(place.member);
}

// Moves a gradient that lies elsewhere (set by the user, or in an older bucket) into the bucket.
void Reducer::adopt_view(std::size_t parameter) {
  Variable& variable = parameters_[parameter].variable;
  const Tensor& view = view_of(parameter);
  const Tensor grad = variable.grad();
  if (grad.data() == view.data() && grad.strides() == view.strides()) return;
  copy_elements(view, grad);
  variable.set_grad(view);
}

}  // namespace lockstep::dist
