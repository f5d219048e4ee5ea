#include "lockstep/models/make_model.h"

#include "lockstep/core/check.h"
#include "lockstep/models/mlp.h"
#include "lockstep/models/small_net.h"
#include "lockstep/models/toy_net.h"

namespace lockstep::models {

std::shared_ptr<Classifier> make_model(std::string_view name, const ModelOptions& options) {
  if (name == "toy_net") return std::make_shared<ToyNetImpl>(options);
  if (name == "small_net") return std::make_shared<SmallNetImpl>(options);
  if (name == "mlp") {
    std::vector<std::int64_t> sizes = {options.channels * options.height * options.width};
    sizes.insert(sizes.end(), options.hidden.begin(), options.hidden.end());
    sizes.push_back(options.classes);
    return std::make_shared<MlpImpl>(sizes);
  }
  throw Error(fmt::format("make_model: there is no model '{}'; there are {}", name,
                          fmt::join(kModelNames, ", ")));
}

}  // namespace lockstep::models
