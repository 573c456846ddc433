#ifndef TUG_SERVER_SYNC_POLICY_H_
#define TUG_SERVER_SYNC_POLICY_H_

// Who waits for whom (sync.policy), as far as lanes decide it: which pushes a segment takes, when
// its clock closes, which pulls it may answer. What a policy means to everybody else:
// proto/sync_mode.h. One file a policy, with its paper and its rule on top; one row a policy in
// sync_policy.cc.
//
// Policies of sums (SumPolicy; summed_pushes.h): a segment has one open clock, its version; pushes
// of that clock are added up until the policy closes it.
// Policies of updates per push (applied_pushes.h): every virtual worker has a clock of its own at
// each segment (vector_clock.h); a push at that clock is an update.

#include <cstdint>
#include <memory>
#include <span>

#include "proto/job.pb.h"
#include "server/applied_clocks.h"
#include "server/vector_clock.h"

namespace tug {

// A segment, as a policy sees it.
struct SegmentClocks {
  uint64_t version = 0;                    // updates it has had
  const VectorClock* next = nullptr;       // update per push only
  const AppliedClocks* applied = nullptr;  // where clocks close without some pushes only
};

// What a push is to a segment.
enum class PushFate {
  kTake,        // part of the update that is being made; maybe a repeat
  kCommitted,   // part of an update that has been made
  kDropped,     // its clock has closed without it
  kEarly,       // another push of its virtual worker must come first
  kImpossible,  // nobody can have reached that clock
};

// What a pull asks of each of its segments.
struct PullWish {
  uint64_t clock = 0;           // that its sender wants to begin
  bool exact = false;           // kExact: all pushes before that clock
  uint32_t virtual_worker = 0;  // those of the sender that are to begin it
  uint32_t virtual_worker_count = 0;
  // By virtual worker, pushes with clock < this will come and no others; empty: not known.
  std::span<const uint64_t> final_clocks = {};
};

// Pure, immutable, thread-safe.
class SyncPolicy {
 public:
  virtual ~SyncPolicy() = default;

  virtual PushFate FateOf(uint32_t virtual_worker, uint64_t clock,
                          const SegmentClocks& segment) const = 0;
  // Sums: whether the open clock closes with the pushes of `arrived` of `live` virtual workers.
  virtual bool Closes(uint32_t arrived, uint32_t live) const = 0;
  // Sums: how many of the virtual workers whose push is missing an update may do without.
  virtual uint32_t spare() const { return 0; }

  // Whether somebody can have asked for that, in a job of so many virtual workers.
  virtual bool MakesSense(const PullWish& pull, uint32_t virtual_workers) const = 0;
  // Whether the segment, as it is, may be served. Once true it stays true, with the same virtual
  // workers live.
  virtual bool Serves(const PullWish& pull, const SegmentClocks& segment) const = 0;
  // Whether a pull that is not served may wait: its clock is the next after one that has begun.
  virtual bool MayWait(const PullWish& pull, const SegmentClocks& segment) const = 0;
  // Whether an exact pull may wait for any clock; of those a sender has one of a block.
  virtual bool exact_for_any_clock() const = 0;
  // The version that the pull is served with, of segments of which the oldest is at `oldest`.
  virtual uint64_t VersionServed(const PullWish& pull, uint64_t oldest) const = 0;
  // The clock whose pushes an answer with that version is named after in traces.
  virtual uint64_t ClockServed(const PullWish& pull, uint64_t version) const = 0;
};

// What policies of sums have in common.
class SumPolicy : public SyncPolicy {
 public:
  // Whose virtual workers they are is not read.
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

// As `sync` says. One of sums has `virtual_workers` contributions.
std::unique_ptr<const SyncPolicy> MakeSyncPolicy(const SyncConfig& sync);

}  // namespace tug

#endif  // TUG_SERVER_SYNC_POLICY_H_
