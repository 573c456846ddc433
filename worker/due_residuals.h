#ifndef TUG_WORKER_DUE_RESIDUALS_H_
#define TUG_WORKER_DUE_RESIDUALS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "proto/sync_mode.h"

namespace tug {

// Which checkpoints what a virtual worker's pushes leave out (exchange/residuals.h) is to be
// written to: those that lanes write (server/summed_pushes.cc, server/applied_pushes.cc), as it
// passes their versions.
//
// Where pushes are summed, a virtual worker has passed version v when it has made its pushes of all
// clocks before v. Where every push is an update, virtual workers are at clocks of their own when
// the weights come to a version: then it has passed v with the first weights of v or later that
// come to its worker between two steps, and the last version with its last push: weights may come
// to that while the worker has yet to take over what another was to push.
//
// Not thread-safe.
class DueResiduals {
 public:
  // Of one virtual worker, at a time: older ones are not waited for.
  static constexpr uint64_t kMost = 8;

  struct Options {
    uint64_t interval = 0;       // steps between checkpoints; 0: there is only the last one
    uint64_t start_version = 0;  // where the timeline begins: nothing is due there
    SyncMode mode = SyncModeOf(SyncConfig::BSP);
  };
  explicit DueResiduals(const Options& options)
      : options_(options), weights_version_(options.start_version) {}

  // Weights of `version` have come to the worker, between two steps. Whether virtual workers pass
  // versions with them.
  bool OnWeights(uint64_t version);
  // The versions that are due of the virtual worker since it was asked last, ascending: what its
  // pushes leave out by now is of the newest, and there is nothing of those before, which it passed
  // at once. `final_version`: with which the job ends; 0: not known.
  //
  // It has made its pushes of all clocks before this one.
  std::vector<uint64_t> AtClock(uint32_t virtual_worker, uint64_t clock, uint64_t final_version);
  // It has made its last push.
  std::vector<uint64_t> AtEnd(uint32_t virtual_worker, uint64_t final_version) {
    return Pass(virtual_worker, final_version, final_version);
  }
  // It has come to this worker: what it passed elsewhere is due again.
  void Forget(uint32_t virtual_worker) { passed_.erase(virtual_worker); }

 private:
  std::vector<uint64_t> Pass(uint32_t virtual_worker, uint64_t version, uint64_t final_version);

  struct Passed {
    uint64_t version;
    uint64_t newest_due;
  };

  const Options options_;
  uint64_t weights_version_;           // newest
  std::map<uint32_t, Passed> passed_;  // by virtual worker
};

}  // namespace tug

#endif  // TUG_WORKER_DUE_RESIDUALS_H_
