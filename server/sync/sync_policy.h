// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SYNC_SYNC_POLICY_H_
#define TUG_SERVER_SYNC_SYNC_POLICY_H_

// Synchronisation rules (sync.policy) that lanes decide: which pushes a segment accepts, when its
// clock closes, which pulls it may answer. For the rest of the system: config/sync_mode.h. One file
// per policy, with its paper and rule at the top; one row per policy in sync_policy.cc.
//
// Policies that sum pushes (SumPolicy; summed_pushes.h): a segment has one open clock, its version;
// pushes of that clock are added up until the policy closes it.
// Policies with an update per push (applied_pushes.h): every virtual worker has a separate clock at
// each segment (vector_clock.h); a push at that clock is an update.

#include <cstdint>
#include <memory>
#include <span>

#include "proto/job.pb.h"
#include "server/sync/applied_clocks.h"
#include "server/sync/vector_clock.h"

namespace tug {

// State of a segment that policies read.
struct SegmentClocks {
  uint64_t version = 0;                    // number of updates
  const VectorClock* next = nullptr;       // SSP and ASP only
  const AppliedClocks* applied = nullptr;  // BACKUP only
};

// Outcome of a push for a segment.
enum class PushFate {
  kTake,        // part of the open update; may be a repeat
  kCommitted,   // part of an earlier update
  kDropped,     // its clock has closed without it
  kEarly,       // another push of its virtual worker must come first
  kImpossible,  // no virtual worker can have reached that clock
};

// Condition of a pull on each of its segments.
struct PullWish {
  uint64_t clock = 0;           // clock that its sender wants to begin
  bool exact = false;           // kExact: all pushes before that clock
  uint32_t virtual_worker = 0;  // first of the sender's that will begin it
  uint32_t virtual_worker_count = 0;
  // By virtual worker, the end of its clocks; empty: unknown.
  std::span<const uint64_t> final_clocks = {};
};

// Pure, immutable, thread-safe.
class SyncPolicy {
 public:
  virtual ~SyncPolicy() = default;

  virtual PushFate FateOf(uint32_t virtual_worker, uint64_t clock,
                          const SegmentClocks& segment) const = 0;
  // Sums: whether the open clock closes after pushes of `arrived` of `live` virtual workers.
  virtual bool Closes(uint32_t arrived, uint32_t live) const = 0;
  // Sums: number of virtual workers whose pushes an update may omit.
  virtual uint32_t spare() const { return 0; }

  // Whether the pull is valid in a job with `virtual_workers`.
  virtual bool MakesSense(const PullWish& pull, uint32_t virtual_workers) const = 0;
  // Whether the segment satisfies the pull now. Once true it stays true while the same virtual
  // workers live.
  virtual bool Serves(const PullWish& pull, const SegmentClocks& segment) const = 0;
  // Whether an unsatisfied pull may wait: at most one clock after one that has begun.
  virtual bool MayWait(const PullWish& pull, const SegmentClocks& segment) const = 0;
  // Whether an exact pull may wait for any clock; a sender has at most one of those per block.
  virtual bool exact_for_any_clock() const = 0;
  // Version that the pull is answered with; its oldest segment is at `oldest`.
  virtual uint64_t VersionServed(const PullWish& pull, uint64_t oldest) const = 0;
  // Clock of that answer in traces.
  virtual uint64_t ClockServed(const PullWish& pull, uint64_t version) const = 0;
};

// Common part of policies that sum pushes.
class SumPolicy : public SyncPolicy {
 public:
  // Virtual workers are not read.
  bool MakesSense(const PullWish&, uint32_t) const override { return true; }
  bool Serves(const PullWish& pull, const SegmentClocks& segment) const override {
    return segment.version >= pull.clock;
  }
  bool MayWait(const PullWish& pull, const SegmentClocks& segment) const override {
    return pull.clock <= segment.version + 1;
  }
  bool exact_for_any_clock() const override { return false; }
  uint64_t VersionServed(const PullWish& pull, uint64_t oldest) const override {
    return pull.exact ? pull.clock : oldest;
  }
  uint64_t ClockServed(const PullWish&, uint64_t version) const override { return version - 1; }
};

// Policy chosen by `sync`.
std::unique_ptr<const SyncPolicy> MakeSyncPolicy(const SyncConfig& sync);

}  // namespace tug

#endif  // TUG_SERVER_SYNC_SYNC_POLICY_H_
