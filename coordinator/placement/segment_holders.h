// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_PLACEMENT_SEGMENT_HOLDERS_H_
#define TUG_COORDINATOR_PLACEMENT_SEGMENT_HOLDERS_H_

// Holders of a job's segments, and how they change when servers are lost, join or hand over. One
// mechanism covers all cases: a lane gets a copy of a segment, the copy is filled while training
// continues, and once in sync it can become the owner.
//
//   owner     the lane that closes the segment's updates and serves its weights
//   copy      a lane that also gets each update, before it is acknowledged
//   in sync   the copy has all committed updates, and will get all later ones
//
// A placement is a numbered state of this table (View.placement). A copy is in sync once the server
// of its segment's owner has reported all copies of its segments in sync, in the first placement
// with this owner and this copy or a later one: a server that keeps both loses nothing at a change.
// After a change of owner the remaining copies must be reported again.
//
// After each change of servers a plan is made (holder_plan.h), which at most two steps reach: first
// its missing copies are added; once all copies are in sync, ownership moves to the planned owners,
// and copies that are not planned are dropped.

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "coordinator/placement/holder_plan.h"

namespace tug {

struct LaneId {
  uint32_t server = 0;  // node id
  uint32_t index = 0;   // on that server

  friend auto operator<=>(const LaneId&, const LaneId&) = default;
};

// Pure: no clock, no I/O. Not thread-safe.
class SegmentHolders {
 public:
  struct Options {
    std::vector<uint64_t> segment_bytes;
    uint32_t replicas = 1;  // sync.replicas, at least 1
    uint32_t lanes_per_server = 1;
  };
  explicit SegmentHolders(Options options);

  // Starts a new timeline: owners are those of PlaceSegments over the lanes of `servers`, in that
  // order. Planned copies exist at once, and are in sync once reported. `weights`: by server, in
  // proportion to which they own segments; empty: equal. REQUIRES: at least one server, ascending.
  void Begin(std::span<const uint32_t> servers, std::span<const uint32_t> weights = {});

  // Sets the servers that will hold all segments; others hand theirs over. The table is unchanged
  // until NextStep, except that joined servers become part of it. No effect, `weights` included, if
  // the servers are the same. REQUIRES: at least one server, ascending.
  void SetServers(std::span<const uint32_t> servers, std::span<const uint32_t> weights = {});

  struct Removal {
    uint32_t owned = 0;                // segments that the server owned
    uint32_t orphans = 0;              // owned segments without an in-sync copy on another server
    std::vector<uint32_t> successors;  // servers that own the other segments now, ascending
  };
  // Removes a lost server: copies of its segments become owners. With orphans nothing changes, and
  // the job must roll back.
  Removal RemoveServer(uint32_t server);

  // Makes the next step toward the plan, if possible. Returns whether the table changed.
  bool NextStep();

  // Whether the table has changed since it was last numbered.
  bool changed() const { return changed_; }
  // Numbers the table. REQUIRES: larger than all earlier numbers.
  void SetPlacement(uint32_t number);
  // Adds a server's report (HeartbeatRequest.copied_placement), unvalidated input. Wants: whether
  // it would have an effect.
  bool Wants(uint32_t server, uint32_t copied_placement) const;
  void AddReport(uint32_t server, uint32_t copied_placement);

  // ---- the table ----
  // Servers that hold segments or will, ascending; Lanes: their lanes in that order.
  std::vector<uint32_t> Servers() const;
  std::vector<LaneId> Lanes() const;
  // By segment, indices into Lanes().
  std::vector<uint32_t> Owners() const;
  // Entries of View.copies: by segment, 1 + the index of the lane, or 0.
  std::vector<std::vector<uint32_t>> Copies() const;

  // ---- statistics ----
  struct Count {
    uint32_t owned = 0;
    uint32_t copies = 0;
    uint32_t missing = 0;  // copies that are not in sync
  };
  Count CountOf(uint32_t server) const;
  // Number of segments in sync on fewer than `replicas` servers, owner included.
  uint32_t AtRisk() const;

 private:
  struct Copy {
    LaneId lane;
    uint32_t since = 0;  // first placement with this owner and this copy
  };
  struct Segment {
    LaneId owner;
    std::vector<Copy> copies;
  };
  struct Target {
    LaneId owner;
    std::vector<LaneId> copies;
  };

  bool InSync(const Segment& segment, const Copy& copy) const;
  bool AllInSync() const;
  void RecordServers(std::span<const uint32_t> servers, std::span<const uint32_t> weights);
  // Weights of the lanes of servers_.
  std::vector<uint32_t> LaneWeights() const;
  void MakePlan();
  bool AddWanted();
  bool SwitchOver();
  // Changes the owner; the remaining copies must be reported in sync again.
  void SetOwner(Segment& segment, const LaneId& owner);

  const Options options_;
  bool changed_ = false;
  uint32_t placement_ = 0;
  std::vector<uint32_t> servers_;         // that will hold all segments
  std::map<uint32_t, uint32_t> weights_;  // by server
  std::vector<Segment> segments_;
  std::vector<Target> plan_;
  std::map<uint32_t, uint32_t> reported_;  // by server
};

}  // namespace tug

#endif  // TUG_COORDINATOR_PLACEMENT_SEGMENT_HOLDERS_H_
