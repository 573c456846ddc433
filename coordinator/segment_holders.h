#ifndef TUG_COORDINATOR_SEGMENT_HOLDERS_H_
#define TUG_COORDINATOR_SEGMENT_HOLDERS_H_

// Who holds which segment of a job, and how that changes while it runs: servers are lost, join,
// hand over. One mechanism for all of it: a lane gets a copy of a segment, the copy is filled while
// training goes on, and once it is in sync it can become the owner.
//
//   owner     the lane that closes the segment's updates and serves its weights
//   copy      a lane that takes the updates too, before anybody is told of them
//   in sync   the copy has all that was ever committed, and goes on to
//
// A placement is a numbered state of this table (View.placement). A copy is in sync once the
// server of its segment's owner has said that all copies of its segments are, in a placement that
// has the same owner and this copy, or a later one: a server that keeps both loses nothing at a
// change. When the owner changes, the copies that stay have to be heard of again.
//
// After each change of servers a plan is made (holder_plan.h), and then at most two steps lead to
// it: first the copies that it wants are added; once all are in sync, owners become those of the
// plan and what it does not want is dropped.

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "coordinator/holder_plan.h"

namespace tug {

struct LaneId {
  uint32_t server = 0;  // node id
  uint32_t index = 0;   // on its server

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

  // A new timeline: owners are those of PlaceSegments over the lanes of `servers`, in that order.
  // Copies are there at once, and in sync when they have been heard of. `weights`: of the servers,
  // in proportion to which they own segments; none: equal. REQUIRES: at least one, ascending.
  void Begin(std::span<const uint32_t> servers, std::span<const uint32_t> weights = {});

  // These are to hold all segments from now on; others that do hand theirs over. What is held stays
  // the same until TakeStep. Where the servers are those of before, so are their weights. REQUIRES:
  // at least one, ascending.
  void SetServers(std::span<const uint32_t> servers, std::span<const uint32_t> weights = {});

  struct Removal {
    uint32_t owned = 0;    // segments that the server owned
    uint32_t orphans = 0;  // of these, segments without a copy elsewhere that is in sync
    std::vector<uint32_t> successors;  // servers that own the others now, ascending
  };
  // The server is lost: copies of what it owned become the owners. If there are orphans nothing
  // has changed, and only another timeline helps.
  Removal RemoveServer(uint32_t server);

  // The next step toward the plan, if there is one that can be taken now. True: something has
  // changed.
  bool TakeStep();

  // Whether the table is another than when it was numbered last.
  bool changed() const { return changed_; }
  // Numbers the table: larger than ever before.
  void SetPlacement(uint32_t number);
  // What a server says (HeartbeatRequest.copied_placement). From outside. Whether it would change
  // anything, and that it has.
  bool Wants(uint32_t server, uint32_t copied_placement) const;
  void AddReport(uint32_t server, uint32_t copied_placement);

  // ---- the table ----
  // Servers that hold something or are to, ascending; their lanes in that order.
  std::vector<uint32_t> Servers() const;
  std::vector<LaneId> Lanes() const;
  // By segment, indices into Lanes().
  std::vector<uint32_t> Owners() const;
  // Entries of View.copies: by segment, 1 + the index of the lane, or 0.
  std::vector<std::vector<uint32_t>> Copies() const;

  // ---- what it amounts to ----
  struct Count {
    uint32_t owned = 0;
    uint32_t copies = 0;
    uint32_t missing = 0;  // of the copies, those that are not in sync
  };
  Count CountOf(uint32_t server) const;
  // Segments that are whole on fewer servers than `replicas`.
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
  void TakeServers(std::span<const uint32_t> servers, std::span<const uint32_t> weights);
  // Of the lanes of servers_.
  std::vector<uint32_t> LaneWeights() const;
  void MakePlan();
  bool AddWanted();
  bool SwitchOver();
  // The owner is another one from now on: what copies have is to be heard of again.
  void SetOwner(Segment& segment, const LaneId& owner);

  const Options options_;
  bool changed_ = false;
  uint32_t placement_ = 0;
  std::vector<uint32_t> servers_;         // that are to hold all
  std::map<uint32_t, uint32_t> weights_;  // of these
  std::vector<Segment> segments_;
  std::vector<Target> plan_;
  std::map<uint32_t, uint32_t> reported_;  // by server
};

}  // namespace tug

#endif  // TUG_COORDINATOR_SEGMENT_HOLDERS_H_
