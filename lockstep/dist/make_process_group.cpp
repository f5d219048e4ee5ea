#include "lockstep/core/check.h"
#include "lockstep/core/config.h"
#include "lockstep/dist/local_group.h"
#include "lockstep/dist/nccl_group.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/dist/shm_group.h"
#include "lockstep/dist/store.h"

namespace lockstep::dist {

std::shared_ptr<ProcessGroup> make_process_group(std::string_view kind,
                                                 std::shared_ptr<Store> store, int rank, int size,
                                                 const ProcessGroupOptions& options) {
  LOCKSTEP_CHECK(size >= 1 && rank >= 0 && rank < size, "make_process_group: rank {} of {} ranks",
                 rank, size);
  LOCKSTEP_CHECK(store != nullptr, "make_process_group: no store");
  LOCKSTEP_CHECK(options.timeout.count() > 0, "make_process_group: a timeout of {} ns",
                 options.timeout.count());
  if (kind == "local") return make_local_group(*store, rank, size, options);
  if (kind == "shm") return make_shm_group(*store, rank, size, options);
  if (kind == "nccl") {
    if constexpr (kHasNccl) return make_nccl_group(std::move(store), rank, size, options);
    throw Error("make_process_group: this build of Lockstep has no NCCL");
  }
  throw Error(
      fmt::format("make_process_group: no transport \"{}\"; there are local, shm, nccl", kind));
}

}  // namespace lockstep::dist
