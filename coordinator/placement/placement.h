// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_PLACEMENT_PLACEMENT_H_
#define TUG_COORDINATOR_PLACEMENT_PLACEMENT_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tug {

// Bytes by lane, to be balanced in proportion to the lanes' weights. Load is bytes / weight; a lane
// of weight 0 should have no bytes, so its load is above all others. Comparisons are exact
// (integers). Pure.
class LaneLoads {
 public:
  // REQUIRES: at least one weight is not 0; weights are below 2^20.
  explicit LaneLoads(std::vector<uint32_t> weights)
      : weights_(std::move(weights)), bytes_(weights_.size(), 0) {}

  uint32_t lanes() const { return static_cast<uint32_t>(weights_.size()); }
  uint32_t weight(uint32_t lane) const { return weights_[lane]; }
  void Add(uint32_t lane, uint64_t bytes) { bytes_[lane] += bytes; }
  void Move(uint64_t bytes, uint32_t from, uint32_t to) {
    bytes_[from] -= bytes;
    bytes_[to] += bytes;
  }

  // Whether the load of `a` is below that of `b`.
  bool Less(uint32_t a, uint32_t b) const { return Less(a, b, 0); }
  // Compares loads with half of a segment added to each: on the lane with the least, the segment
  // adds least to the sum of bytes^2 / weight. With equal weights the same as Less(a, b).
  bool Less(uint32_t a, uint32_t b, uint64_t segment_bytes) const;
  // First lane with the least load, among those of weight > 0.
  uint32_t Lightest() const;
  // Whether moving this many bytes lowers that sum. REQUIRES: not Less(from, to); `from` has them.
  bool Helps(uint64_t bytes, uint32_t from, uint32_t to) const;
  // Distance of `bytes` from the move that lowers the sum most, in a unit that depends on the two
  // lanes.
  double OffBest(uint64_t bytes, uint32_t from, uint32_t to) const;

 private:
  std::vector<uint32_t> weights_;
  std::vector<uint64_t> bytes_;
};

// Assigns each segment an owner: lane index by segment. Heaviest segment first, each to the lane
// where it adds least (LaneLoads::Less); ties go to the lower index. With equal weights that is the
// lane with the fewest bytes so far (Graham 1969, longest processing time first), and no two lanes
// differ by more than the largest segment. Otherwise the loads of two lanes a and b differ by at
// most half of it times (1 / weight(a) + 1 / weight(b)). A pure function: every run of a job has
// the same placement. REQUIRES: as LaneLoads.
std::vector<uint32_t> PlaceSegments(std::span<const uint64_t> segment_bytes,
                                    std::span<const uint32_t> lane_weights);
// PlaceSegments with equal weights. REQUIRES: lanes >= 1.
std::vector<uint32_t> PlaceSegments(std::span<const uint64_t> segment_bytes, uint32_t lanes);

// Distributes virtual workers 0..virtual_workers-1 to `workers` in contiguous ranges, as equal as
// possible: the first virtual_workers % workers get one more. REQUIRES: 1 <= workers <=
// virtual_workers.
std::vector<std::vector<uint32_t>> AssignVirtualWorkers(uint32_t virtual_workers, uint32_t workers);

}  // namespace tug

#endif  // TUG_COORDINATOR_PLACEMENT_PLACEMENT_H_
