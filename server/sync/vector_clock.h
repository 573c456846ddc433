// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SYNC_VECTOR_CLOCK_H_
#define TUG_SERVER_SYNC_VECTOR_CLOCK_H_

#include <cstdint>
#include <span>
#include <vector>

#include "server/sync/live_set.h"

namespace tug {

// By virtual worker, the clock of the next push that a segment lacks: all before it are applied.
// Tracks the lowest of the live ones (Ho et al. 2013: the clock of the slowest worker). Not
// thread-safe: owned by one lane.
class VectorClock {
 public:
  // least() without live virtual workers; above all clocks.
  static constexpr uint64_t kNever = ~uint64_t{0};

  // REQUIRES: `live` outlives it.
  VectorClock(const LiveSet& live, uint64_t start) : live_(&live), next_(live.size(), start) {
    Recount();
  }

  uint64_t next(uint32_t virtual_worker) const { return next_[virtual_worker]; }
  std::span<const uint64_t> all() const { return next_; }
  const LiveSet& live() const { return *live_; }
  // Lowest clock of the live virtual workers; kNever if none is live.
  uint64_t least() const { return least_; }

  // The push at next(virtual_worker) has been applied. Returns whether least() has risen.
  bool Advance(uint32_t virtual_worker) {
    const uint64_t before = next_[virtual_worker]++;
    if (before != least_ || !live_->has(virtual_worker) || --at_least_ > 0) return false;
    Recount();
    return true;
  }
  // REQUIRES: an entry for each virtual worker.
  void Set(std::span<const uint64_t> next) {
    next_.assign(next.begin(), next.end());
    Recount();
  }
  // Call when the live set has changed.
  void Recount() {
    least_ = kNever;
    at_least_ = 0;
    for (uint32_t vw = 0; vw < next_.size(); ++vw) {
      if (!live_->has(vw) || next_[vw] > least_) continue;
      if (next_[vw] < least_) at_least_ = 0;
      least_ = next_[vw];
      ++at_least_;
    }
  }

 private:
  const LiveSet* live_;
  std::vector<uint64_t> next_;
  uint64_t least_ = kNever;
  uint32_t at_least_ = 0;  // number of live ones at least_
};

}  // namespace tug

#endif  // TUG_SERVER_SYNC_VECTOR_CLOCK_H_
