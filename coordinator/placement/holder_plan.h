// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_PLACEMENT_HOLDER_PLAN_H_
#define TUG_COORDINATOR_PLACEMENT_HOLDER_PLAN_H_

// Plans which lanes hold which segments, given the current holders: an owner, and copies on other
// servers. Moves are few: a segment stays unless its holder leaves or balance requires a move.
//
//  1. A segment whose owner leaves: the in-sync copy on the lane that owns least becomes the owner;
//     without one, the lane that owns least.
//  2. Owned bytes are balanced in proportion to lane weights (LaneLoads): segments move from the
//     heaviest lane that has one smaller than the gap to the lightest lane, until there is none.
//     With equal weights, no lane then owns more than another by more than its smallest segment.
//     Segments with an in-sync copy on the target go first, then those nearest to half the gap.
//  3. Copies on servers of their own stay: in-sync ones first, then the previous owner, then the
//     rest. Missing copies go to the lanes that hold least; ties to the next server after the
//     owner's.
//  4. Held bytes (owned and copied) are balanced like owned ones, by moving copies.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tug {

// Current holders of a segment; lanes are indices.
struct SegmentHeld {
  uint64_t bytes = 0;
  std::optional<uint32_t> owner;  // none: it leaves, or there was none
  std::vector<uint32_t> copies;   // those that can stay
  size_t whole_copies = 0;        // the first whole_copies of them are in sync
};

struct PlannedHolders {
  uint32_t owner = 0;
  std::vector<uint32_t> copies;  // on distinct servers, none of them the owner's

  friend bool operator==(const PlannedHolders&, const PlannedHolders&) = default;
};

// `server_of_lane`: server of each lane that may hold segments; a server's lanes are adjacent. Each
// segment gets `holders` lanes, at most one per server. A pure function, and a fixed point:
// planning again changes nothing, nor does planning after PlaceSegments. `weights`: by lane; empty:
// equal. A lane of weight 0 gets only copies, and only if there are too few other servers.
// REQUIRES: at least one lane, holders >= 1; of weights, as LaneLoads.
std::vector<PlannedHolders> PlanHolders(std::span<const SegmentHeld> segments,
                                        std::span<const uint32_t> server_of_lane, uint32_t holders,
                                        std::span<const uint32_t> weights = {});

}  // namespace tug

#endif  // TUG_COORDINATOR_PLACEMENT_HOLDER_PLAN_H_
