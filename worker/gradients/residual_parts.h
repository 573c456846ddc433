// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_GRADIENTS_RESIDUAL_PARTS_H_
#define TUG_WORKER_GRADIENTS_RESIDUAL_PARTS_H_

#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "checkpoint/part_report.h"
#include "config/sync_mode.h"
#include "worker/core/worker_core.h"

namespace tug {

class HeartbeatRequest;
class View;

// Checkpoint parts of a worker's residuals, by virtual worker, as its heartbeats report them. Pure;
// not thread-safe.
class ResidualParts {
 public:
  // Where versions count pushes, no part becomes void.
  explicit ResidualParts(const SyncMode& mode) : mode_(mode) {}

  // Enters a new view of the timeline. Parts of virtual workers that other nodes run from a clock
  // on are void after that clock, written or not, until a view returns them to this node.
  void OnView(const View& view, uint32_t node_id);
  // REQUIRES: newer than the virtual worker's earlier parts.
  void Add(CheckpointPart part);
  // Adds the parts for the versions before the newest of an order, which have no file.
  void AddOlder(const ResidualOrder& order);
  void AddTo(HeartbeatRequest& beat) const;
  // A heartbeat with these parts was acknowledged.
  void OnHeard(const HeartbeatRequest& sent);

 private:
  const SyncMode mode_;
  std::map<uint32_t, PartReports> parts_;  // by virtual worker
  // By virtual worker that other nodes run: the newest version whose part is kept.
  std::map<uint32_t, uint64_t> newest_kept_;
};

// Part for the newest version of an order; its file is reported separately (ReportFile). `pause`:
// how long the copy stopped training.
CheckpointPart NewestPart(const ResidualOrder& order, absl::Duration pause);

}  // namespace tug

#endif  // TUG_WORKER_GRADIENTS_RESIDUAL_PARTS_H_
