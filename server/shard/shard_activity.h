// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SHARD_SHARD_ACTIVITY_H_
#define TUG_SERVER_SHARD_SHARD_ACTIVITY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/sync/live_set.h"

namespace tug {

// Current activity of a lane, sampled between two messages, for monitoring.
struct ShardActivity {
  static constexpr size_t kMaxLate = 64;

  enum class Doing {
    kResting,   // no push of the oldest clock has arrived, no pull waits
    kWaiting,   // for the pushes of `late`
    kUpdating,  // a complete sum waits for other lanes before it is applied
  };

  Doing doing = Doing::kResting;
  // BSP, BACKUP: of the incomplete blocks of the oldest open clock, the one that workers push
  // first. SSP, ASP: the block of a waiting pull.
  uint32_t block = 0;
  uint64_t clock = 0;
  // Virtual workers whose push is missing, ascending; at most the first kMaxLate.
  std::vector<uint32_t> late = {};

  // Sets kWaiting for the live virtual workers with `is_late(virtual worker)`.
  template <typename IsLate>
  void SetWaiting(const LiveSet& live, IsLate is_late) {
    doing = Doing::kWaiting;
    for (uint32_t vw = 0; vw < live.size() && late.size() < kMaxLate; ++vw) {
      if (live.has(vw) && is_late(vw)) late.push_back(vw);
    }
  }

  friend bool operator==(const ShardActivity&, const ShardActivity&) = default;
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_SHARD_ACTIVITY_H_
