// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_OBSERVE_SYNC_FIGURES_H_
#define TUG_COORDINATOR_OBSERVE_SYNC_FIGURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace tug {

// Counts of a job's sync policy, summed over all servers.
struct SyncFigures {
  uint64_t updates = 0;  // segment updates
  // Number of updates with staleness 0, 1, 2, ...; entry kMaxCounted: that or more.
  static constexpr uint64_t kMaxCounted = 255;
  std::vector<uint64_t> staleness;
  uint64_t dropped_pushes = 0;  // messages too late for their update, and their repeats

  // 0 without updates. A lower bound if some updates were at kMaxCounted or more.
  double MeanStaleness() const;
  // Largest staleness; kMaxCounted: that or more.
  uint64_t MostStaleness() const;
};

SyncFigures SyncFiguresOf(const StatusReply& status);

// "sync: ssp(4): 12,000 segment updates, staleness: mean 1.42, maximum 7", or "mean at
// least 31.20, maximum 255 or more" if some are not counted exactly; for BACKUP "sync: backup(1):
// 12,000 segment updates, 31 late pushes dropped". Empty for BSP.
std::string SyncText(const SyncConfig& config, const SyncFigures& figures);

}  // namespace tug

#endif  // TUG_COORDINATOR_OBSERVE_SYNC_FIGURES_H_
