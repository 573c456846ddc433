#ifndef TUG_COORDINATOR_JOB_VIEWS_H_
#define TUG_COORDINATOR_JOB_VIEWS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "coordinator/actions.h"
#include "coordinator/job_blocks.h"
#include "coordinator/membership.h"
#include "coordinator/segment_holders.h"
#include "coordinator/timeline.h"
#include "coordinator/view_change.h"

namespace tug {

class StatusReply;

// "3 segments"
std::string SegmentsText(uint32_t count);

// The view that nodes have of a job, and how it becomes the next one: which workers carry which
// virtual workers (view_change.h), which servers hold which segments (segment_holders.h), and the
// placement of these while it is being agreed. Not thread-safe.
class JobViews {
 public:
  // All outlive it.
  JobViews(const JobConfig& config, Membership& membership, ActionQueue& actions);

  // A view for the timeline. REQUIRES: workers and servers that are members, ascending; one each.
  void BeginTimeline(const Timeline& timeline, const BlockLayout& layout,
                     const std::vector<uint32_t>& workers, const std::vector<uint32_t>& servers);
  // Takes the next steps toward the servers and workers that are wanted. `workers`: that are to
  // carry virtual workers. REQUIRES: a view.
  void Change(const std::vector<uint32_t>& workers, bool stop_requested);
  // A change is settled, once: places() says what it is of, and Issue makes it the view.
  bool TakeSettled() { return places_.TakeSettled(); }
  // As ViewChange.
  std::set<uint32_t> TakeLost() { return places_.TakeLost(); }
  // Whether segments are placed otherwise now.
  bool Issue();
  // What a server says of it.
  void AddReport(const Member& server, const HeartbeatRequest& request);
  // Leaves out of a heartbeat what AddReport would do nothing with.
  void KeepNews(const Member& member, HeartbeatRequest& request) const;
  // The job goes on with the copies of what the server held, or says why not.
  bool OutlivesServer(const Member& server, const std::string& lost);

  // ---- the newest view ----
  bool begun() const { return view_.has_value(); }
  uint32_t number() const { return begun() ? view_->number() : 0; }  // 0: none
  const View& view() const { return *view_; }                        // REQUIRES: begun()
  // Whether who knows this view knows the newest one; or is in its timeline at least.
  bool IsNewest(uint32_t known_view) const { return begun() && known_view == number(); }
  bool IsOfTimeline(uint32_t known_view) const { return begun() && known_view >= timeline_view_; }
  // REQUIRES, of these: begun().
  bool Includes(const Member& member) const;
  bool Everyone(absl::FunctionRef<bool(const Member&)> holds) const;
  // The newest schedule that all its servers have.
  uint32_t ScheduleOfServers() const;
  // By virtual worker: the node that carries it there; and the step it is in, if it has begun one.
  std::vector<uint32_t> Carriers() const;
  std::vector<std::optional<uint64_t>> CarriersClocks() const;

  // ---- who is to have what ----
  const ViewChange& places() const { return places_; }
  // As far as the job waits for it.
  bool EveryVirtualWorkerIsCarried() const;
  // By virtual worker, whether a member is to carry it.
  std::vector<bool> Carried() const;
  // Whether segments go from server to server.
  bool MovesSegments() const;
  bool HoldsSegments(const Member& member) const;
  uint32_t OwnedSegments(const Member& member) const;

  // ---- what is told ----
  void AddView(const Member& member, uint32_t known_view, HeartbeatReply& reply) const;
  void AddNextView(const Member& member, HeartbeatReply& reply) const;
  void AddStatus(StatusReply& reply) const;
  void AddStatus(const Member& member, NodeStatus& node) const;

 private:
  // Gives places to servers that join, and takes the next step toward the holders that are wanted.
  void ChangeServers();
  void GivePlaces();
  // Of a new timeline: who holds what.
  void BeginHolders(const BlockLayout& layout, const std::vector<uint32_t>& servers);
  std::vector<uint32_t> WeightsOf(const std::vector<uint32_t>& servers) const;
  // Once a change with another placement has begun: `next_view_`.
  void PrepareNextView();
  // Lanes, and who holds what in them.
  void FillPlacement(View& view) const;
  // Number and workers of the view.
  void SetPlaces(const std::vector<uint64_t>& start_clocks);
  // The server beside each worker of the view.
  void PairWithServers();

  const JobConfig& config_;
  Membership& membership_;
  ActionQueue& actions_;
  ViewChange places_;
  std::optional<View> view_;
  std::optional<SegmentHolders> holders_;  // with the view
  // The change under way, or settled and not issued yet, is one of who holds what; then
  // `next_view_` says it.
  bool placement_pending_ = false;
  View next_view_;
  bool copies_were_lost_ = false;  // until there are as many again as there should be
  uint32_t timeline_view_ = 0;     // number of the timeline's first view
};

}  // namespace tug

#endif  // TUG_COORDINATOR_JOB_VIEWS_H_
