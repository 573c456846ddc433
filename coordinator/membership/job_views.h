// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_MEMBERSHIP_JOB_VIEWS_H_
#define TUG_COORDINATOR_MEMBERSHIP_JOB_VIEWS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "blocks/job_blocks.h"
#include "coordinator/membership/actions.h"
#include "coordinator/membership/membership.h"
#include "coordinator/membership/view_change.h"
#include "coordinator/placement/segment_holders.h"
#include "coordinator/progress/timeline.h"

namespace tug {

class StatusReply;

// "3 segments"
std::string SegmentsText(uint32_t count);

// Newest view of a job and the change to the next one: assignment of virtual workers
// (view_change.h), placement of segments (segment_holders.h), and the placement that is being
// agreed on. Not thread-safe.
class JobViews {
 public:
  // REQUIRES: all arguments outlive this object.
  JobViews(const JobConfig& config, Membership& membership, ActionQueue& actions);

  // Issues the first view of a timeline. REQUIRES: members only, ascending; at least one of each.
  void BeginTimeline(const Timeline& timeline, const BlockLayout& layout,
                     const std::vector<uint32_t>& workers, const std::vector<uint32_t>& servers);
  // Makes the next steps toward the wanted servers and workers. `workers`: those that will run
  // virtual workers. REQUIRES: begun().
  void Change(const std::vector<uint32_t>& workers, bool stop_requested);
  // True once when a change is settled: places() has the result, and Issue makes it the newest
  // view.
  bool TakeSettled() { return places_.TakeSettled(); }
  // See ViewChange.
  std::set<uint32_t> TakeLost() { return places_.TakeLost(); }
  // Makes the settled change the newest view. Returns whether the placement of segments changed.
  bool Issue();
  // Adds a server's report about the change.
  void AddReport(const Member& server, const HeartbeatRequest& request);
  // Clears the fields of a heartbeat that AddReport would ignore.
  void KeepNews(const Member& member, HeartbeatRequest& request) const;
  // Removes a lost server. True if replicas of all its segments exist, so that the job continues.
  // Adds the notice, which begins with `lost`; if the result is false, only about lost replicas.
  bool OutlivesServer(const Member& server, const std::string& lost);

  // ---- the newest view ----
  bool begun() const { return view_.has_value(); }
  uint32_t number() const { return begun() ? view_->number() : 0; }  // 0: none
  const View& view() const { return *view_; }                        // REQUIRES: begun()
  // Whether `known_view` is the newest view, or belongs to its timeline.
  bool IsNewest(uint32_t known_view) const { return begun() && known_view == number(); }
  bool IsOfTimeline(uint32_t known_view) const { return begun() && known_view >= timeline_view_; }
  // REQUIRES for the following: begun().
  bool Includes(const Member& member) const;
  bool Everyone(absl::FunctionRef<bool(const Member&)> holds) const;
  // Newest schedule that all servers of the view have adopted.
  uint32_t ScheduleOfServers() const;
  // By virtual worker: its worker in the view (ViewChange::kNobody: none), and that worker's
  // current step if it has begun one.
  std::vector<uint32_t> Carriers() const;
  std::vector<std::optional<uint64_t>> CarriersClocks() const;

  // ---- assignment and placement ----
  const ViewChange& places() const { return places_; }
  // Whether all virtual workers are assigned (SHRINK: at least one), and no change is in progress.
  bool EveryVirtualWorkerIsCarried() const;
  // By virtual worker: whether it is assigned to a member.
  std::vector<bool> Carried() const;
  // Whether segments can move between servers.
  bool MovesSegments() const;
  bool HoldsSegments(const Member& member) const;
  uint32_t OwnedSegments(const Member& member) const;

  // ---- replies and status ----
  void AddView(const Member& member, uint32_t known_view, HeartbeatReply& reply) const;
  void AddNextView(const Member& member, HeartbeatReply& reply) const;
  void AddStatus(StatusReply& reply) const;
  void AddStatus(const Member& member, NodeStatus& node) const;

 private:
  // Adds joined servers to the placement, and makes the next step toward the wanted holders.
  void ChangeServers();
  void GivePlaces();
  void AddRank(const Member& member, NodeStatus& node) const;
  // Places the segments of a new timeline.
  void BeginHolders(const BlockLayout& layout, const std::vector<uint32_t>& servers);
  std::vector<uint32_t> WeightsOf(const std::vector<uint32_t>& servers) const;
  // Sets `next_view_`, once a change of the placement has begun.
  void PrepareNextView();
  // Fills in lanes and the segments they hold.
  void FillPlacement(View& view) const;
  // Sets number and workers of the view.
  void SetPlaces(const std::vector<uint64_t>& start_clocks);
  // Pairs each worker of the view with a server.
  void PairWithServers();

  const JobConfig& config_;
  Membership& membership_;
  ActionQueue& actions_;
  ViewChange places_;
  std::optional<View> view_;
  std::optional<SegmentHolders> holders_;  // with the view
  // The change in progress, or settled and not issued, changes the placement; `next_view_` has it.
  bool placement_pending_ = false;
  View next_view_;
  bool copies_were_lost_ = false;  // until all segments have sync.replicas replicas again
  uint32_t timeline_view_ = 0;     // number of the timeline's first view
};

}  // namespace tug

#endif  // TUG_COORDINATOR_MEMBERSHIP_JOB_VIEWS_H_
