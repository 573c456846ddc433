#ifndef TUG_COORDINATOR_CHECKPOINT_COLLECTOR_H_
#define TUG_COORDINATOR_CHECKPOINT_COLLECTOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proto/control.pb.h"

namespace tug {

// All lanes' parts of one checkpoint, by lane.
struct CollectedCheckpoint {
  uint64_t version = 0;
  std::vector<CheckpointPart> parts;
  double pause_seconds = 0;  // of the lane that stopped longest
  double write_seconds = 0;  // of the slowest lane
  // By virtual worker, where lanes count them: the first clock that some segment lacks.
  std::vector<uint64_t> clocks;
};

// Gathers lanes' parts until a checkpoint is whole. Repeats, parts of another placement of
// segments, and parts that no correct lane sends, change nothing. Not thread-safe.
class CheckpointCollector {
 public:
  // Checkpoints whose parts are still arriving; a lane writes one at a time.
  static constexpr size_t kMaxOpen = 16;

  // REQUIRES: lanes >= 1. `clocks`: how many of them a part has; 0: none, whatever it says.
  // Versions up to `newest_whole` are old; none: the job writes its initial weights too, version 0.
  CheckpointCollector(uint32_t lanes, uint32_t clocks, std::optional<uint64_t> newest_whole);

  // Segments are placed on other lanes from now on: what is not whole is dropped. `owners`: of the
  // segments, indices of lanes; one that owns none has no part. REQUIRES: one owner at least.
  void SetPlacement(uint32_t placement, std::span<const uint32_t> owners);

  // Whether Add would take the part.
  bool Wants(const CheckpointPart& part) const;
  // The checkpoint that became whole with this part.
  std::optional<CollectedCheckpoint> Add(const CheckpointPart& part);

 private:
  struct Open {
    uint32_t arrived = 0;
    std::vector<std::optional<CheckpointPart>> parts;
  };

  uint32_t placement_ = 0;      // View.placement
  std::vector<bool> has_part_;  // by lane
  uint32_t lanes_;              // that have one
  const uint32_t clocks_;
  std::optional<uint64_t> newest_whole_;
  std::map<uint64_t, Open> open_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_CHECKPOINT_COLLECTOR_H_
