#ifndef TUG_WORKER_DUE_RESIDUALS_H_
#define TUG_WORKER_DUE_RESIDUALS_H_

#include <cstdint>
#include <map>
#include <vector>

namespace tug {

// Which checkpoints what a virtual worker's pushes leave out (exchange/residuals.h) is to be
// written to: those that lanes write (server/shard_snapshots.cc), as it passes their versions.
//
// Where pushes are summed, a virtual worker has passed version v when it has made its pushes of all
// clocks before v. Where every push is an update, virtual workers are at clocks of their own when
// the weights come to a version: then it has passed v with the first weights of v or later that
// come to its worker between two steps, and the last version with its last push.
//
// Not thread-safe.
class DueResiduals {
 public:
  // Of one virtual worker, at a time: older ones are not waited for.
  static constexpr uint64_t kMost = 8;

  // `interval`: steps between checkpoints; 0: there is only the last one. Nothing is due at
  // `start_version`, where the timeline begins.
  DueResiduals(uint64_t interval, uint64_t start_version)
      : interval_(interval), start_version_(start_version) {}

  // The virtual worker has passed `version`: the versions that are due since it was asked last,
  // ascending. `final_version`: with which the job ends; 0: not known.
  std::vector<uint64_t> Pass(uint32_t virtual_worker, uint64_t version, uint64_t final_version);
  // It has come to this worker: what it passed elsewhere is due again.
  void Forget(uint32_t virtual_worker) { passed_.erase(virtual_worker); }

 private:
  struct Passed {
    uint64_t version;
    uint64_t newest_due;
  };

  const uint64_t interval_;
  const uint64_t start_version_;
  std::map<uint32_t, Passed> passed_;  // by virtual worker
};

}  // namespace tug

#endif  // TUG_WORKER_DUE_RESIDUALS_H_
