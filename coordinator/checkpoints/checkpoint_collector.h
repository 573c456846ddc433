// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_CHECKPOINTS_CHECKPOINT_COLLECTOR_H_
#define TUG_COORDINATOR_CHECKPOINTS_CHECKPOINT_COLLECTOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/part_report.h"
#include "proto/control.pb.h"

namespace tug {

// A complete checkpoint: the parts of all lanes, by lane, then residual files, by virtual worker.
struct CollectedCheckpoint {
  uint64_t version = 0;
  std::vector<CheckpointPart> parts;
  double pause_seconds = 0;  // longest stop of a lane or worker
  double write_seconds = 0;  // of the slowest lane or worker
  // By virtual worker, where lanes count clocks: the first clock that some segment has not
  // committed.
  std::vector<uint64_t> clocks;
};

// Collects lanes' parts until a checkpoint is complete; with error feedback also a residual part of
// each assigned virtual worker. Ignores repeats, parts of another placement of segments, and parts
// that no correct lane or worker sends. Not thread-safe.
//
// Steps may be far shorter than the heartbeat interval, so one heartbeat may report hundreds of
// checkpoints. Lanes report in order of version: a checkpoint that a lane has passed without a part
// can never become complete and is dropped. (CommitCheckpoint deletes its folder with the next
// commit.)
class CheckpointCollector {
 public:
  // Max checkpoints with parts still arriving; a newer one replaces the oldest.
  static constexpr size_t kMaxOpen = PartReports::kMost;
  // Max checkpoints that miss only residual parts; beyond, the oldest completes without them.
  static constexpr size_t kMaxAwaited = 16;

  // REQUIRES: lanes >= 1. `clocks`: number of clocks in a part; 0: a part's clocks are ignored.
  // Versions up to `newest_whole` are old. None: the job also writes its initial weights, version
  // 0.
  CheckpointCollector(uint32_t lanes, uint32_t clocks, std::optional<uint64_t> newest_whole);

  // Changes the placement: parts of lanes for incomplete checkpoints are dropped. `owners`: lane
  // index by segment; a lane that owns no segment has no part. REQUIRES: at least one owner.
  void SetPlacement(uint32_t placement, std::span<const uint32_t> owners);

  uint32_t placement() const { return placement_; }

  // Sets which virtual workers must have a residual part; none do at first, or if empty. Returns
  // the checkpoints that are now complete, ascending, since they no longer wait for the others.
  std::vector<CollectedCheckpoint> SetCarried(std::vector<bool> carried);
  // Whether a checkpoint of this version or a later one is complete.
  bool IsOld(uint64_t version) const {
    return newest_whole_.has_value() && version <= *newest_whole_;
  }
  // Drops a version of which a part could not be written; later parts of it are ignored.
  void GiveUp(uint64_t version);
  bool IsGivenUp(uint64_t version) const { return given_up_.contains(version); }
  // Whether a residual part of `version` stays valid after its virtual worker moved to another
  // worker, which resumes at `clock`: true for versions up to `clock`. Where lanes count clocks,
  // versions do not correspond to clocks, and it is always true.
  bool CountsAfterMove(uint64_t version, uint64_t clock) const {
    return clocks_ > 0 || version <= clock;
  }
  // Drops residual parts that are invalid after the virtual worker moved.
  void OnMoved(uint32_t virtual_worker, uint64_t clock);
  // Whether a checkpoint misses only residual parts.
  bool AwaitsResiduals() const;

  // Whether Add would accept the part.
  bool Wants(const CheckpointPart& part) const;
  // Returns the checkpoints that this part completes, ascending. A virtual worker writes in order
  // of version: its part shows that it will write none for earlier checkpoints. The oldest
  // checkpoint completes without residuals once more than kMaxAwaited wait for them.
  std::vector<CollectedCheckpoint> Add(const CheckpointPart& part);

 private:
  struct Open {
    uint32_t arrived = 0;                              // number of lanes' parts
    std::vector<std::optional<CheckpointPart>> parts;  // by lane
    std::map<uint32_t, CheckpointPart> residuals;      // by virtual worker
  };
  // Whether the part's file name is valid and differs from the other files of its version.
  bool HasOwnFile(const CheckpointPart& part) const;
  // Whether a checkpoint of this version, which has no part yet, can be opened.
  bool HasRoomFor(uint64_t version) const;
  // Drops incomplete checkpoints older than the lane's newest part.
  void DropPassed(uint32_t lane, uint64_t version);
  bool HasLanes(const Open& open) const { return open.arrived == lanes_; }
  bool IsWhole(uint64_t version, const Open& open) const;
  // Removes and returns all complete checkpoints, ascending.
  std::vector<CollectedCheckpoint> TakeWhole();
  // The oldest checkpoint to complete without residuals, if more than kMaxAwaited wait for them.
  std::optional<uint64_t> OldestOverdue() const;
  CollectedCheckpoint Take(uint64_t version);

  uint32_t placement_ = 0;                        // View.placement
  std::vector<bool> has_part_;                    // by lane
  uint32_t lanes_;                                // that have a part
  std::map<uint32_t, uint64_t> newest_of_lane_;   // version of its newest part, in this placement
  std::vector<bool> carried_;                     // by virtual worker
  std::map<uint32_t, uint64_t> newest_residual_;  // by virtual worker: version of its newest part
  const uint32_t clocks_;
  std::optional<uint64_t> newest_whole_;
  std::map<uint64_t, Open> open_;
  std::set<uint64_t> given_up_;  // versions later than newest_whole_
};

}  // namespace tug

#endif  // TUG_COORDINATOR_CHECKPOINTS_CHECKPOINT_COLLECTOR_H_
