#ifndef TUG_WORKER_RESIDUAL_PARTS_H_
#define TUG_WORKER_RESIDUAL_PARTS_H_

#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "checkpoint/part_report.h"
#include "proto/sync_mode.h"
#include "worker/worker_core.h"

namespace tug {

class HeartbeatRequest;
class View;

// The checkpoint parts of a worker's residuals, by virtual worker, as its heartbeats report them.
// Pure; not thread-safe.
class ResidualParts {
 public:
  // Where versions tell no clocks of virtual workers, no part becomes void.
  explicit ResidualParts(const SyncMode& mode) : mode_(mode) {}

  // A new view of the timeline. Parts of virtual workers that other nodes carry from a clock on are
  // void after that clock, written or not, until a view gives them back to this node.
  void OnView(const View& view, uint32_t node_id);
  // REQUIRES: newer than the virtual worker's parts before.
  void Add(CheckpointPart part);
  // Adds the parts for the versions before the newest of an order, which have no file.
  void AddOlder(const ResidualOrder& order);
  void AddTo(HeartbeatRequest& beat) const;
  // A heartbeat with these parts was answered.
  void OnHeard(const HeartbeatRequest& sent);

 private:
  const SyncMode mode_;
  std::map<uint32_t, PartReports> parts_;  // by virtual worker
  // By virtual worker that other nodes carry: the newest version of which a part is kept.
  std::map<uint32_t, uint64_t> newest_kept_;
};

// The part for the newest version of an order; the file is reported apart (ReportFile). `pause`:
// how long the copy held up training.
CheckpointPart NewestPart(const ResidualOrder& order, absl::Duration pause);

}  // namespace tug

#endif  // TUG_WORKER_RESIDUAL_PARTS_H_
