// SPDX-License-Identifier: Apache-2.0
#include "server/sync/ssp_policy.h"

#include <algorithm>

#include "config/sync_mode.h"

namespace tug {
namespace {

class SspPolicy final : public SyncPolicy {
 public:
  explicit SspPolicy(uint64_t staleness) : staleness_(staleness) {}

  PushFate FateOf(uint32_t virtual_worker, uint64_t clock,
                  const SegmentClocks& segment) const override {
    const uint64_t next = segment.next->next(virtual_worker);
    if (clock == next) return PushFate::kTake;
    if (clock < next) return PushFate::kCommitted;
    // A worker reuses its gradient memory only once the previous push is committed.
    return clock == next + 1 ? PushFate::kEarly : PushFate::kImpossible;
  }
  bool Closes(uint32_t arrived, uint32_t) const override { return arrived > 0; }
  bool MakesSense(const PullWish& pull, uint32_t virtual_workers) const override {
    return pull.virtual_worker < virtual_workers && pull.virtual_worker_count > 0 &&
           pull.virtual_worker_count <= virtual_workers - pull.virtual_worker;
  }
  bool Serves(const PullWish& pull, const SegmentClocks& segment) const override {
    const VectorClock& next = *segment.next;
    if (pull.exact) return HasAllBefore(pull.clock, pull, next);
    if (pull.clock > staleness_ && !HasAllBefore(pull.clock - staleness_, pull, next)) return false;
    for (uint32_t i = 0; i < pull.virtual_worker_count; ++i) {
      if (next.next(pull.virtual_worker + i) < pull.clock) return false;
    }
    return true;
  }
  // The final evaluation may ask for any clock.
  bool MayWait(const PullWish& pull, const SegmentClocks& segment) const override {
    return pull.exact || pull.clock <= segment.next->next(pull.virtual_worker) + 1;
  }
  bool exact_for_any_clock() const override { return true; }
  uint64_t VersionServed(const PullWish&, uint64_t oldest) const override { return oldest; }
  uint64_t ClockServed(const PullWish& pull, uint64_t) const override { return pull.clock - 1; }

 private:
  // Considers only pushes that will come.
  static bool HasAllBefore(uint64_t clock, const PullWish& pull, const VectorClock& next) {
    if (next.least() >= clock) return true;
    if (pull.final_clocks.empty()) return false;
    for (uint32_t vw = 0; vw < next.live().size(); ++vw) {
      if (next.live().has(vw) && next.next(vw) < std::min(clock, pull.final_clocks[vw])) {
        return false;
      }
    }
    return true;
  }

  const uint64_t staleness_;
};

}  // namespace

std::unique_ptr<const SyncPolicy> MakeSspPolicy(const SyncConfig& sync) {
  return std::make_unique<const SspPolicy>(*StalenessBound(sync));
}

std::unique_ptr<const SyncPolicy> MakeAspPolicy(const SyncConfig&) {
  return std::make_unique<const SspPolicy>(kMaxLead);
}

}  // namespace tug
