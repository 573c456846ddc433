#ifndef TUG_SERVER_SHARD_ACTIVITY_H_
#define TUG_SERVER_SHARD_ACTIVITY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/live_set.h"

namespace tug {

// What a lane is at between two messages, for people who watch.
struct ShardActivity {
  static constexpr size_t kMostLate = 64;

  enum class Doing {
    kResting,   // nothing of what is oldest has come, and nobody waits
    kWaiting,   // for the pushes of `late`
    kUpdating,  // a sum is complete, and not applied: other lanes have yet to say something of it
  };

  Doing doing = Doing::kResting;
  // Of the oldest open clock, the block that is pushed first of those that are not whole. Where
  // every push is an update: what the pull that has waited for the lowest clock wants.
  uint32_t block = 0;
  uint64_t clock = 0;
  // Virtual workers whose push is missing, ascending; the first kMostLate.
  std::vector<uint32_t> late = {};

  // It waits for those of which `is_late(virtual worker)` is true.
  template <typename IsLate>
  void SetWaiting(const LiveSet& live, IsLate is_late) {
    doing = Doing::kWaiting;
    for (uint32_t vw = 0; vw < live.size() && late.size() < kMostLate; ++vw) {
      if (live.has(vw) && is_late(vw)) late.push_back(vw);
    }
  }

  friend bool operator==(const ShardActivity&, const ShardActivity&) = default;
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_ACTIVITY_H_
