// Views of a job: the first one, what becomes of it when nodes are lost and others join, and the
// next timeline.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "checkpoint/checkpoint.h"
#include "coordinator/coordinator.h"
#include "coordinator/host_pairs.h"
#include "exchange/segment_table.h"
#include "exchange/view_lanes.h"
#include "proto/placement_mode.h"
#include "proto/sync_mode.h"

namespace tug {
namespace {

// Whether placement.host_weight_cache has anything to keep.
bool CachesWeights(const View& view) {
  return std::any_of(
      view.workers().begin(), view.workers().end(),
      [&](const WorkerAssignment& worker) { return !PullLanesOn(view, worker.host_id()).empty(); });
}

}  // namespace

bool Coordinator::IsInView(const Member& member) const {
  const auto has_it = [&](const auto& nodes, const auto& id_of) {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](const auto& node) { return id_of(node) == member.id; });
  };
  if (member.kind == SERVER) {
    return has_it(view_->lanes(), [](const Lane& lane) { return lane.server_node_id(); });
  }
  return has_it(view_->workers(), [](const WorkerAssignment& place) { return place.node_id(); });
}

bool Coordinator::EveryoneInView(const std::function<bool(const Member&)>& holds) const {
  return std::all_of(
      membership_.members().begin(), membership_.members().end(),
      [&](const auto& entry) { return !IsInView(entry.second) || holds(entry.second); });
}

// Or need not be, as long as there is one that is.
bool Coordinator::EveryVirtualWorkerIsCarried() const {
  if (places_.fencing()) return false;
  const auto carried = [](uint32_t owner) { return owner != ViewChange::kNobody; };
  const std::vector<uint32_t>& owners = places_.owners();
  if (options_.config.fault().on_worker_loss() == FaultConfig::SHRINK) {
    return std::any_of(owners.begin(), owners.end(), carried);
  }
  return std::all_of(owners.begin(), owners.end(), carried);
}

void Coordinator::IssueFirstView() {
  IssueTimeline(membership_.FirstServers());
  if (options_.config.comm().scheduler() == CommConfig::AUTO) {
    const absl::StatusOr<SegmentTable> table =
        SegmentTable::Create(view_->blocks(), options_.config.comm().segment_elements());
    TUG_CHECK_OK(table.status());  // the layout was made from it
    tuning_.emplace(options_.config, *table, options_.predicts_steps);
  }
  if (options_.config.placement().host_weight_cache() && !CachesWeights(*view_)) {
    AddNotice("nothing cached",
              "placement.host_weight_cache has no effect: no worker is on a host that has a server "
              "while other hosts have servers too");
  }
  if (!Recovers()) membership_.Close();
  if (MovesSegments()) membership_.OpenToServers();
}

void Coordinator::IssueTimeline(const std::vector<uint32_t>& servers) {
  places_.BeginTimeline(WorkersThatStay(), servers);
  BeginHolders(servers);
  View view;
  view.set_timeline(timeline_->start.number);
  view.set_start_version(timeline_->start.version);
  view.set_restore_path(timeline_->start.restore_path);
  *view.mutable_blocks() = blocks_.layout().blocks;
  FillPlacement(view);
  view_ = std::move(view);
  timeline_view_ = places_.number();
  timeline_->checkpoints.SetPlacement(
      view_->placement(),
      {view_->lane_of_segment().data(), static_cast<size_t>(view_->lane_of_segment_size())});
  std::vector<uint64_t> clocks;
  for (uint32_t v = 0; v < places_.owners().size(); ++v) clocks.push_back(timeline_->StartClock(v));
  least_begun_.clear();
  for (uint32_t v = 0; v < clocks.size(); ++v) {
    least_begun_.push_back(timeline_->ClockBeyondStart(v));
  }
  SetCarried();
  SetPlaces(clocks);
}

void Coordinator::SetPlaces(const std::vector<uint64_t>& start_clocks) {
  view_->set_number(places_.number());
  view_->clear_workers();
  for (const Member* worker : membership_.OfKind(WORKER)) {
    WorkerAssignment place;
    place.set_node_id(worker->id);
    place.set_host_id(worker->host_id);
    for (uint32_t v = 0; v < start_clocks.size(); ++v) {
      if (places_.owners()[v] != worker->id) continue;
      place.add_virtual_workers(v);
      place.add_start_clocks(start_clocks[v]);
    }
    if (place.virtual_workers_size() > 0) *view_->add_workers() = std::move(place);
  }
  if (AllReduces(options_.config)) PairWithServers();
}

void Coordinator::PairWithServers() {
  const auto hosted = [&](uint32_t id) {
    return HostedNode{id, membership_.members().at(id).host_id};
  };
  std::vector<HostedNode> workers, servers;
  for (const WorkerAssignment& place : view_->workers()) workers.push_back(hosted(place.node_id()));
  for (const uint32_t id : holders_->Servers()) servers.push_back(hosted(id));
  const std::vector<uint32_t> beside = PairHosts(workers, servers);
  for (size_t i = 0; i < beside.size(); ++i) {
    view_->mutable_workers(static_cast<int>(i))->set_server_node_id(beside[i]);
  }
}

void Coordinator::ChangeView(absl::Time now) {
  if (Ended() || !view_.has_value() || !Recovers()) return;
  if (rolling_back_) return RollBack(now);
  if (phase_ != RUNNING) return;
  if (places_.TakeSettled()) TakeSettledView(now);
  if (Ended()) return;
  ChangeServers();
  for (const Member* worker : membership_.OfKind(WORKER)) {
    if (worker->leaving) places_.SetLeaving(worker->id);
  }
  places_.SetWanted(workers_wanted_);
  places_.SetWorkers(WorkersThatStay(), timeline_->end.stop_requested());
  if (holders_->changed()) {
    places_.SetServers(holders_->Servers());
    PrepareNextView();
  } else if (placement_pending_ && next_view_.number() != places_.number()) {
    PrepareNextView();  // another change has begun before it was settled
  }
}

void Coordinator::TakeSettledView(absl::Time now) {
  const std::vector<uint64_t>& start_clocks = places_.start_clocks();
  const uint64_t all = options_.config.train().steps() * start_clocks.size();
  for (const uint64_t clock : start_clocks) {
    if (clock <= all) continue;
    return Fail(absl::StrCat("servers say that a virtual worker goes on at step ", clock,
                             ", beyond the end of the job: run the same version of tug everywhere"),
                now);
  }
  for (const uint32_t virtual_worker : places_.TakeLost()) {
    timeline_->progress.SetLost(virtual_worker, places_.start_clocks()[virtual_worker]);
  }
  const std::vector<uint32_t>& owners = places_.owners();
  if (options_.config.fault().on_worker_loss() == FaultConfig::SHRINK) {
    for (uint32_t v = 0; v < owners.size(); ++v) {
      timeline_->progress.SetAway(v, owners[v] == ViewChange::kNobody);
    }
  }
  std::vector<uint32_t> before(owners.size(), ViewChange::kNobody);
  for (const WorkerAssignment& place : view_->workers()) {
    for (const uint32_t v : place.virtual_workers()) before[v] = place.node_id();
  }
  for (const WorkerAssignment& place : view_->workers()) {
    const Member* const worker = membership_.Find(place.node_id());
    if (worker == nullptr) continue;  // it has been told
    TellResiduals(
        *worker, worker->leaving ? "left, and with it" : "gave virtual workers away, and with them",
        owners);
  }
  for (uint32_t v = 0; v < owners.size(); ++v) {
    if (owners[v] == before[v]) continue;
    least_begun_[v] = std::max(least_begun_[v], places_.start_clocks()[v] + 1);
    timeline_->checkpoints.OnMoved(v, places_.start_clocks()[v]);
  }
  if (std::exchange(placement_pending_, false)) {
    view_->mutable_lanes()->Swap(next_view_.mutable_lanes());
    view_->mutable_lane_of_segment()->Swap(next_view_.mutable_lane_of_segment());
    view_->mutable_copies()->Swap(next_view_.mutable_copies());
    view_->set_placement(next_view_.placement());
    timeline_->checkpoints.SetPlacement(
        view_->placement(),
        {view_->lane_of_segment().data(), static_cast<size_t>(view_->lane_of_segment_size())});
  }
  SetCarried();
  SetPlaces(places_.start_clocks());
  for (const auto& [id, unused] : membership_.members()) {
    Member& member = *membership_.Find(id);
    member.ready = member.pausing = member.finished = false;
    if (!IsInView(member) && member.left_in_view == 0) member.left_in_view = view_->number();
    if (IsInView(member)) member.left_in_view = 0;
  }
  TakeProgress(now);
}

void Coordinator::OnLost(uint32_t id, const std::string& how, absl::Time now) {
  Member* const member = membership_.Find(id);
  if (member == nullptr || Ended()) return;
  Keep(now, [&](JournalRecord& record) {
    record.mutable_lost()->set_node_id(id);
    record.mutable_lost()->set_how(how);
  });
  const std::string lost = absl::StrCat(member->Name(), " was lost: ", how);
  if (view_.has_value() && !Recovers()) {
    member->told_of_end = true;  // it cannot be told
    return Fail(lost, now);
  }
  if (member->let_go) {
    OnLeft(*member);
    membership_.Remove(id);
    return;
  }
  const NodeKind kind = member->kind;
  const bool in_view = view_.has_value() && (IsInView(*member) || HoldsSegments(*member));
  const std::string key = absl::StrCat("lost ", id);
  if (!in_view || rolling_back_) {
    const bool stood_by = kind == SERVER && view_.has_value() && !member->placed;
    AddNotice(key, absl::StrCat(lost, stood_by ? "; it stood by" : "; its place is free again"));
  } else if (kind == SERVER && OutlivesServer(*member, lost)) {
    // It has said so.
  } else if (kind == SERVER && AllIsSaved()) {
    rolling_back_ = true;
    rolling_back_since_ = now;
    AddNotice(key, lost);
  } else if (kind == SERVER && rollbacks_ >= options_.config.fault().max_rollbacks()) {
    member->told_of_end = true;
    return Fail(absl::StrCat(lost, ", and with it a part of the weights; fault.max_rollbacks = ",
                             options_.config.fault().max_rollbacks(),
                             " allows no further return to a checkpoint"),
                now);
  } else if (kind == SERVER || phase_ == WAITING) {
    rollbacks_ += kind == SERVER ? 1 : 0;
    rolling_back_ = true;
    rolling_back_since_ = now;
    phase_ = WAITING;
    AddNotice(key, absl::StrCat(lost, "; the job goes back to step ", committed_version(),
                                ", or a later checkpoint that is being written, when a ",
                                KindName(kind), " has joined in its place"));
  } else {
    AddNotice(key, absl::StrCat(lost, LossText()));
    TellResiduals(*member, "is lost, and with it", {});
  }
  membership_.Remove(id);
  if (membership_.OfKind(WORKER).empty()) blocks_.ForgetDeclared();
  if (view_.has_value()) SetCarried();
}

std::string Coordinator::LossText() const {
  const size_t left = membership_.OfKind(WORKER).size() - 1;
  switch (options_.config.fault().on_worker_loss()) {
    case FaultConfig::WAIT:
      return "; the job waits until a worker joins in its place";
    case FaultConfig::SHRINK:
      return left == 0 ? "; the job waits until a worker joins"
                       : "; the job goes on without its share";
    default:
      return left == 0 ? "; the job waits until a worker joins"
                       : "; the others take over its virtual workers";
  }
}

void Coordinator::TellResiduals(const Member& worker, const std::string& what,
                                std::span<const uint32_t> owners) {
  const std::string gone = timeline_->residuals.Take(worker.id, owners);
  if (gone.empty()) return;
  AddNotice(absl::StrCat("residuals ", worker.id, " ", places_.number(), " ", what),
            absl::StrCat(worker.Name(), " ", what, " ", gone));
}

void Coordinator::OnGone(uint32_t node_id, uint64_t job, absl::Time now) {
  if (job != options_.job) return;
  OnLost(node_id, "its connection was closed", now);
  Advance(now);
}

bool Coordinator::Recovers() const { return GoesOnWithoutANode(options_.config); }

bool Coordinator::AllIsSaved() const {
  const std::optional<uint64_t> final_version = timeline_->end.final_version();
  return committed_version() >= final_version.value_or(options_.config.train().steps());
}

// Once everyone whom it takes is there, and what is whole of checkpoints is committed. What only
// lacks a part of a worker that is there becomes whole within moments.
void Coordinator::RollBack(absl::Time now) {
  if (timeline_->checkpoints.AwaitsResiduals()) {
    if (now - rolling_back_since_ < failure_timeout_) return;
    GiveUpResiduals();
  }
  if (committing_.has_value() || !waiting_commits_.empty()) return;
  if (AllIsSaved()) {
    AddNotice("saved", "all steps are in the checkpoint: only the last evaluation is missing");
    return Finish(now);
  }
  const std::vector<uint32_t> servers = membership_.ServersAgain(NeededToRollBack(SERVER));
  if (servers.empty() || WorkersThatStay().size() < NeededToRollBack(WORKER)) return;
  rolling_back_ = false;
  TellWhatIsNotRestored();
  const bool stopping = timeline_->end.stop_requested();
  TimelineStart start = newest_start_;
  start.number = timeline_->start.number + 1;
  timeline_ = std::make_unique<Timeline>(options_.config, std::move(start));
  if (stopping) timeline_->end.RequestStop();
  for (const auto& [id, unused] : membership_.members()) {
    Member& member = *membership_.Find(id);
    member.ready = member.started = member.pausing = member.finished = false;
    member.reported.reset();
  }
  RecallEvaluations();
  best_.emplace(options_.config, newest_best_);
  trace_done_ = true;  // its steps are taken again
  IssueTimeline(servers);
  actions_.emplace_back(TimelineBegun{timeline_->start.number, timeline_->start.version});
}

// At the first step there was nothing to restore.
void Coordinator::TellWhatIsNotRestored() {
  if (newest_start_.restore_path.empty()) return;
  const std::string gone = timeline_->residuals.TakeAllBut(newest_start_.residuals);
  if (gone.empty()) return;
  AddNotice(absl::StrCat("residuals ", timeline_->start.number),
            absl::StrCat("the job begins again without ", gone));
}

void Coordinator::RecallEvaluations() {
  std::erase_if(evals_,
                [&](const EvalMetrics& eval) { return eval.version > timeline_->start.version; });
  early_stop_.emplace(options_.config.train());
  for (const EvalMetrics& eval : evals_) early_stop_->Add(eval);
}

}  // namespace tug
