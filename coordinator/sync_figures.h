#ifndef TUG_COORDINATOR_SYNC_FIGURES_H_
#define TUG_COORDINATOR_SYNC_FIGURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace tug {

// What servers counted of a job's sync policy, segments of all lanes taken together.
struct SyncFigures {
  uint64_t updates = 0;  // of segments
  // How many updates had staleness 0, 1, 2, ...; entry kMostCounted: that or more.
  static constexpr uint64_t kMostCounted = 255;
  std::vector<uint64_t> staleness;
  uint64_t dropped_pushes = 0;  // messages that came too late for their update, and repeats of them

  // 0 without updates. At least: those of kMostCounted or more count as that.
  double MeanStaleness() const;
  // The largest that occurred; kMostCounted: that or more.
  uint64_t MostStaleness() const;
};

SyncFigures SyncFiguresOf(const StatusReply& status);

// "sync: ssp(4): 12,000 updates of segments, staleness 1.42 on average, 7 at most", or "at least
// 31.20 on average, 255 or more at most" where some are not counted exactly; of BACKUP "sync:
// backup(1): 12,000 updates of segments, 31 messages with pushes came too late". Empty for BSP,
// of which there is nothing to say.
std::string SyncText(const SyncConfig& config, const SyncFigures& figures);

}  // namespace tug

#endif  // TUG_COORDINATOR_SYNC_FIGURES_H_
