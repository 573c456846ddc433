// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_CORE_DUE_RESIDUALS_H_
#define TUG_WORKER_CORE_DUE_RESIDUALS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "config/sync_mode.h"

namespace tug {

// Decides to which checkpoints the residuals of a virtual worker (exchange/encode/residuals.h) are
// written: those that lanes write (server/shard/summed_pushes.cc, server/shard/applied_pushes.cc),
// as the virtual worker passes their versions.
//
// Where pushes are summed, a virtual worker has passed version v after its pushes of all clocks
// before v. Where every push is an update, virtual workers are at different clocks when the weights
// reach a version: a virtual worker passes v with the first weights of v or later that its worker
// gets between two steps. It passes the last version with its last push instead: weights may reach
// that version while the worker still has to take over pushes of another one, and may never come if
// a server is lost.
//
// Not thread-safe.
class DueResiduals {
 public:
  // Max interval versions due in one call: checkpoints do not wait for older parts.
  static constexpr uint64_t kMost = 8;

  struct Options {
    uint64_t interval = 0;       // steps between checkpoints; 0: only the last one
    uint64_t start_version = 0;  // start of the timeline: nothing is due there
    SyncMode mode = SyncModeOf(SyncConfig::BSP);
  };
  explicit DueResiduals(const Options& options)
      : options_(options), weights_version_(options.start_version) {}

  // Records that weights of `version` arrived between two steps. Returns whether virtual workers
  // pass versions with weights.
  bool OnWeights(uint64_t version);
  // Newly due versions of the virtual worker, ascending. Its current residuals belong to the
  // newest; the others, passed in the same call, get none. `final_version`: last version of the
  // job; 0: unknown.
  //
  // AtClock: the virtual worker has made its pushes of all clocks before `clock`.
  std::vector<uint64_t> AtClock(uint32_t virtual_worker, uint64_t clock, uint64_t final_version);
  // AtEnd: it has made its last push.
  std::vector<uint64_t> AtEnd(uint32_t virtual_worker, uint64_t final_version) {
    return Pass(virtual_worker, final_version, final_version);
  }
  // The virtual worker moved to this worker: versions it passed elsewhere are due again.
  void Forget(uint32_t virtual_worker) { passed_.erase(virtual_worker); }

 private:
  std::vector<uint64_t> Pass(uint32_t virtual_worker, uint64_t version, uint64_t final_version);

  struct Passed {
    uint64_t version;
    uint64_t newest_due;
  };

  const Options options_;
  uint64_t weights_version_;           // newest seen
  std::map<uint32_t, Passed> passed_;  // by virtual worker
};

}  // namespace tug

#endif  // TUG_WORKER_CORE_DUE_RESIDUALS_H_
