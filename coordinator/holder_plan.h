#ifndef TUG_COORDINATOR_HOLDER_PLAN_H_
#define TUG_COORDINATOR_HOLDER_PLAN_H_

// Which lanes should hold which segments, given who holds them now: an owner, and copies on other
// servers. Few moves: a segment stays where it is unless its holder goes, or balance wants it
// elsewhere.
//
//  1. An owner that goes: a copy of the segment becomes the owner, else the lane that owns least.
//  2. Owned bytes are balanced, in proportion to the weights of lanes (LaneLoads): segments go from
//     the lane with most, of those that have one that is smaller than the gap, to the lane with
//     least, until there is none. Then, with equal weights, no lane owns more than another by more
//     than its smallest segment. Rather a segment whose copy is there already, then one that is
//     about half of the gap.
//  3. Copies stay that are on servers of their own, whole ones first; then the owner of before; the
//     rest go to the lanes that hold least, of equal ones the next after the owner's server.
//  4. Held bytes (owned and copied) are balanced as owned ones are, by moving copies.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tug {

// Lanes are indices.
struct SegmentHeld {
  uint64_t bytes = 0;
  std::optional<uint32_t> owner;  // none: it goes, or there was none
  std::vector<uint32_t> copies;   // that can stay
  size_t whole_copies = 0;        // the first so many of them are in sync
};

struct PlannedHolders {
  uint32_t owner = 0;
  std::vector<uint32_t> copies;  // on distinct servers, none of them the owner's

  friend bool operator==(const PlannedHolders&, const PlannedHolders&) = default;
};

// `server_of_lane`: of each lane that is to hold segments; a server's lanes are neighbours. Each
// segment gets `holders` of them, or as many as there are servers. A pure function, and a fixed
// point: what it gave is not moved if it is asked again; nor is what PlaceSegments gave. `weights`:
// of lanes; none: they are equal. One of weight 0 gets only copies, if other servers are too few.
// REQUIRES: at least one lane, holders >= 1; of weights, as LaneLoads.
std::vector<PlannedHolders> PlanHolders(std::span<const SegmentHeld> segments,
                                        std::span<const uint32_t> server_of_lane, uint32_t holders,
                                        std::span<const uint32_t> weights = {});

}  // namespace tug

#endif  // TUG_COORDINATOR_HOLDER_PLAN_H_
