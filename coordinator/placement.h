#ifndef TUG_COORDINATOR_PLACEMENT_H_
#define TUG_COORDINATOR_PLACEMENT_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tug {

// Bytes of lanes that are to have bytes in proportion to their weights. A lane's load is its bytes
// over its weight; one of weight 0 is to have none, so its load is above all others'. Exact: whole
// numbers throughout. Pure.
class LaneLoads {
 public:
  // REQUIRES: a weight that is not 0, weights below 2^20.
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
  // The same, with half of a segment added to each: the lane for which that is least is the one
  // where the segment adds least to the sum of bytes^2 / weight. With equal weights, as Less.
  bool Less(uint32_t a, uint32_t b, uint64_t segment_bytes) const;
  // Of lanes of weights other than 0, the first with the least.
  uint32_t Lightest() const;
  // Whether that sum gets smaller if so many bytes move. REQUIRES: not Less(from, to); `from` has
  // them.
  bool Helps(uint64_t bytes, uint32_t from, uint32_t to) const;
  // How far from what would make it smallest, in a unit that depends on the two lanes.
  double OffBest(uint64_t bytes, uint32_t from, uint32_t to) const;

 private:
  std::vector<uint32_t> weights_;
  std::vector<uint64_t> bytes_;
};

// Which lane owns each segment: lane index per segment, in segment order. Heaviest segment first,
// each to the lane whose load it leaves least (LaneLoads::Less); ties go to the lower index. With
// equal weights that is the lane with the fewest bytes so far (Graham 1969, longest processing time
// first), and no two lanes differ by more than the largest segment; with others, the loads of no
// two lanes a and b by more than half of it, (1 / weight(a) + 1 / weight(b)) times. A pure
// function: every run of a job places alike. REQUIRES: as LaneLoads.
std::vector<uint32_t> PlaceSegments(std::span<const uint64_t> segment_bytes,
                                    std::span<const uint32_t> lane_weights);
// With equal weights. REQUIRES: lanes >= 1.
std::vector<uint32_t> PlaceSegments(std::span<const uint64_t> segment_bytes, uint32_t lanes);

// Virtual workers 0..virtual_workers-1 dealt to `workers` in contiguous runs, as equal as possible:
// the first virtual_workers % workers carry one more. REQUIRES: 1 <= workers <= virtual_workers.
std::vector<std::vector<uint32_t>> AssignVirtualWorkers(uint32_t virtual_workers, uint32_t workers);

}  // namespace tug

#endif  // TUG_COORDINATOR_PLACEMENT_H_
