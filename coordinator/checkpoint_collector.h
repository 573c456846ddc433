#ifndef TUG_COORDINATOR_CHECKPOINT_COLLECTOR_H_
#define TUG_COORDINATOR_CHECKPOINT_COLLECTOR_H_

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

// All lanes' parts of one checkpoint, by lane, and those of virtual workers that have a file.
struct CollectedCheckpoint {
  uint64_t version = 0;
  std::vector<CheckpointPart> parts;
  double pause_seconds = 0;  // of the lane, or worker, that stopped longest
  double write_seconds = 0;  // of the slowest
  // By virtual worker, where lanes count them: the first clock that some segment lacks.
  std::vector<uint64_t> clocks;
};

// Gathers lanes' parts until a checkpoint is whole; with error feedback also a part of each virtual
// worker that is carried: what its pushes had left out. Repeats, parts of another placement of
// segments, and parts that no correct lane or worker sends, change nothing. Not thread-safe.
//
// Steps may be far shorter than the time between two heartbeats, so that a lane tells of hundreds
// of checkpoints at once. Lanes report in order of version: a checkpoint that a lane has passed
// without a part of its own can never become whole, and is dropped. (Its folder goes when the next
// one is committed: CommitCheckpoint.)
class CheckpointCollector {
 public:
  // Checkpoints whose parts are still arriving; a newer one takes the place of the oldest.
  static constexpr size_t kMaxOpen = PartReports::kMost;
  // Those that lack parts of virtual workers only: the oldest goes without.
  static constexpr size_t kMaxAwaited = 16;

  // REQUIRES: lanes >= 1. `clocks`: how many of them a part has; 0: none, whatever it says.
  // Versions up to `newest_whole` are old; none: the job writes its initial weights too, version 0.
  CheckpointCollector(uint32_t lanes, uint32_t clocks, std::optional<uint64_t> newest_whole);

  // Segments are placed on other lanes from now on: what lanes have written of a checkpoint that is
  // not whole is dropped. `owners`: of the segments, indices of lanes; one that owns none has no
  // part. REQUIRES: one owner at least.
  void SetPlacement(uint32_t placement, std::span<const uint32_t> owners);

  uint32_t placement() const { return placement_; }

  // Virtual workers that have a part; at first, and where this is empty, none has. Those that are
  // carried no more hold nothing up: the checkpoints that are whole without them, ascending.
  std::vector<CollectedCheckpoint> SetCarried(std::vector<bool> carried);
  // Whether a checkpoint of this version, or of a later one, is whole.
  bool IsOld(uint64_t version) const {
    return newest_whole_.has_value() && version <= *newest_whole_;
  }
  // A part of this version was not written: nothing of it is wanted any more.
  void GiveUp(uint64_t version);
  bool IsGivenUp(uint64_t version) const { return given_up_.contains(version); }
  // Whether what a worker writes of a virtual worker still counts after that has moved to another
  // worker, which goes on at `clock`: of versions up to it. Where lanes count clocks a version is
  // the clock of none, and it does.
  bool CountsAfterMove(uint64_t version, uint64_t clock) const {
    return clocks_ > 0 || version <= clock;
  }
  // The virtual worker has moved: what does not count any more is dropped.
  void OnMoved(uint32_t virtual_worker, uint64_t clock);
  // Whether a checkpoint lacks nothing but parts of virtual workers.
  bool AwaitsResiduals() const;

  // Whether Add would take the part.
  bool Wants(const CheckpointPart& part) const;
  // The checkpoints that became whole with this part, ascending. A virtual worker writes in order
  // of version: with its part those before lack nothing of it. And the oldest is whole as it is
  // where virtual workers are more than kMaxAwaited checkpoints behind lanes.
  std::vector<CollectedCheckpoint> Add(const CheckpointPart& part);

 private:
  struct Open {
    uint32_t arrived = 0;                              // of lanes
    std::vector<std::optional<CheckpointPart>> parts;  // by lane
    std::map<uint32_t, CheckpointPart> residuals;      // by virtual worker
  };
  // Whether a manifest can name this part's file beside the others of its version.
  bool HasOwnFile(const CheckpointPart& part) const;
  // Whether a checkpoint of this version, of which there is nothing yet, may come in.
  bool HasRoomFor(uint64_t version) const;
  // The lane is past older versions.
  void DropPassed(uint32_t lane, uint64_t version);
  bool HasLanes(const Open& open) const { return open.arrived == lanes_; }
  bool IsWhole(uint64_t version, const Open& open) const;
  // All that are, ascending.
  std::vector<CollectedCheckpoint> TakeWhole();
  // Of more than kMaxAwaited.
  std::optional<uint64_t> OldestOverdue() const;
  CollectedCheckpoint Take(uint64_t version);

  uint32_t placement_ = 0;                        // View.placement
  std::vector<bool> has_part_;                    // by lane
  uint32_t lanes_;                                // that have one
  std::map<uint32_t, uint64_t> newest_of_lane_;   // version of its newest part, in this placement
  std::vector<bool> carried_;                     // by virtual worker
  std::map<uint32_t, uint64_t> newest_residual_;  // by virtual worker: of which it had a part
  const uint32_t clocks_;
  std::optional<uint64_t> newest_whole_;
  std::map<uint64_t, Open> open_;
  std::set<uint64_t> given_up_;  // later than newest_whole_
};

}  // namespace tug

#endif  // TUG_COORDINATOR_CHECKPOINT_COLLECTOR_H_
