// SPDX-License-Identifier: Apache-2.0
// Views and timelines of a job: the first view, changes when nodes are lost or join, and rollbacks.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "blocks/segment_table.h"
#include "blocks/view_lanes.h"
#include "config/sync_mode.h"
#include "coordinator/coordinator.h"

namespace tug {
namespace {

// Whether placement.host_weight_cache can cache anything.
bool CachesWeights(const View& view) {
  return std::ranges::any_of(view.workers(), [&view](const WorkerAssignment& worker) {
    return !PullLanesOn(view, worker.host_id()).empty();
  });
}

// Effect of losing a worker, for the notice. `left`: number of remaining workers.
std::string LossText(FaultConfig::WorkerLoss policy, size_t left) {
  switch (policy) {
    case FaultConfig::WAIT:
      return "; the job waits for a replacement";
    case FaultConfig::SHRINK:
      return left == 0 ? "; the job waits for a worker to join"
                       : "; the job continues without its virtual workers";
    default:
      return left == 0 ? "; the job waits for a worker to join"
                       : "; the other workers take over its virtual workers";
  }
}

}  // namespace

void Coordinator::IssueFirstView() {
  IssueTimeline(membership_.FirstServers());
  if (config().comm().scheduler() == CommConfig::AUTO) {
    const absl::StatusOr<SegmentTable> table =
        SegmentTable::Create(views_.view().blocks(), config().comm().segment_elements());
    TUG_CHECK_OK(table.status());  // the layout was made from this table
    tuning_.emplace(config(), *table, options_.predicts_steps);
  }
  if (config().placement().host_weight_cache() && !CachesWeights(views_.view())) {
    actions_.AddNotice("nothing cached",
                       "placement.host_weight_cache has no effect: it needs workers on a host that "
                       "has a server, and servers on other hosts");
  }
  if (!ContinuesWithoutNode(config())) membership_.Close();
  if (views_.MovesSegments()) membership_.OpenToServers();
}

void Coordinator::IssueTimeline(const std::vector<uint32_t>& servers) {
  views_.BeginTimeline(*timeline_, blocks_.layout(), leaving_.WorkersThatStay(), servers);
  checkpoints_.SetPlacement(views_.view());
  checkpoints_.SetCarried(views_.Carried());
}

void Coordinator::ChangeView(absl::Time now) {
  if (stage_.ended() || !views_.begun() || !ContinuesWithoutNode(config())) return;
  if (stage_.rolling_back()) return RollBack(now);
  if (phase() != RUNNING) return;
  if (views_.TakeSettled()) TakeSettledView(now);
  if (stage_.ended()) return;
  views_.Change(leaving_.WorkersThatStay(), timeline_->end.stop_requested());
}

void Coordinator::TakeSettledView(absl::Time now) {
  const std::vector<uint32_t>& owners = views_.places().owners();
  const std::vector<uint64_t>& start_clocks = views_.places().start_clocks();
  const uint64_t all = config().train().steps() * start_clocks.size();
  const auto beyond = std::ranges::find_if(start_clocks, [all](uint64_t c) { return c > all; });
  if (beyond != start_clocks.end()) {
    return Fail(absl::StrCat("servers report that a virtual worker continues at step ", *beyond,
                             ", beyond the end of the job: run the same version of tug everywhere"),
                now);
  }
  for (const uint32_t v : views_.TakeLost()) timeline_->progress.SetLost(v, start_clocks[v]);
  if (config().fault().on_worker_loss() == FaultConfig::SHRINK) {
    for (uint32_t v = 0; v < owners.size(); ++v) {
      timeline_->progress.SetAway(v, owners[v] == ViewChange::kNobody);
    }
  }
  for (const WorkerAssignment& place : views_.view().workers()) {
    const Member* const worker = membership_.Find(place.node_id());
    if (worker == nullptr) continue;  // a notice was added when it was lost
    ReportLostResiduals(*worker, worker->leaving ? "left" : "gave up virtual workers", owners);
  }
  const std::vector<uint32_t> before = views_.Carriers();
  for (uint32_t v = 0; v < owners.size(); ++v) {
    if (owners[v] == before[v]) continue;
    timeline_->OnMoved(v, start_clocks[v]);
    checkpoints_.OnMoved(v, start_clocks[v]);
  }
  if (views_.Issue()) checkpoints_.SetPlacement(views_.view());
  checkpoints_.SetCarried(views_.Carried());
  TakeProgress(now);
}

void Coordinator::OnLost(uint32_t id, const std::string& how, absl::Time now) {
  Member* const member = membership_.Find(id);
  if (member == nullptr || stage_.ended()) return;
  Keep(now, [&](JournalRecord& record) {
    record.mutable_lost()->set_node_id(id);
    record.mutable_lost()->set_how(how);
  });
  const std::string lost = absl::StrCat(member->NameAndPlace(), " was lost: ", how);
  if (views_.begun() && !ContinuesWithoutNode(config())) {
    member->told_of_end = true;  // it cannot be notified
    return Fail(lost, now);
  }
  if (member->let_go) {
    leaving_.OnLeft(*member);
    membership_.Remove(id);
    return;
  }
  const NodeKind kind = member->kind;
  const bool in_view =
      views_.begun() && (views_.Includes(*member) || views_.HoldsSegments(*member));
  const uint32_t rollback_limit = config().fault().max_rollbacks();
  const std::string key = absl::StrCat("lost ", id);
  if (!in_view || stage_.rolling_back()) {
    const bool stood_by = kind == SERVER && views_.begun() && !member->placed;
    actions_.AddNotice(
        key, absl::StrCat(lost, stood_by ? "; it was a standby" : "; another one can join"));
  } else if (kind == SERVER && phase() == RUNNING && views_.OutlivesServer(*member, lost)) {
    // OutlivesServer has added the notice.
  } else if (kind == SERVER && checkpoints_.AllIsSaved()) {
    stage_.RollBack(/*loses_steps=*/false, now);
    actions_.AddNotice(key, lost);
  } else if (kind == SERVER && stage_.rollbacks() >= rollback_limit) {
    member->told_of_end = true;
    return Fail(
        absl::StrCat(lost, "; its segments have no complete replica, and fault.max_rollbacks = ",
                     rollback_limit,
                     " allows no further rollback: raise it, or set sync.replicas=2"),
        now);
  } else if (kind == SERVER || phase() == WAITING) {
    stage_.RollBack(/*loses_steps=*/kind == SERVER, now);
    actions_.AddNotice(
        key,
        absl::StrCat(lost, "; the job rolls back to step ", checkpoints_.committed_version(),
                     " (or a later checkpoint that is being written) once a replacement ",
                     KindName(kind), " joins (tug train and tug launch start one; else run tug ",
                     KindName(kind), ")"));
  } else {
    const size_t left = membership_.OfKind(WORKER).size() - 1;
    actions_.AddNotice(key, absl::StrCat(lost, LossText(config().fault().on_worker_loss(), left)));
    ReportLostResiduals(*member, "was lost", {});
  }
  membership_.Remove(id);
  if (membership_.OfKind(WORKER).empty()) blocks_.ForgetDeclared();
  if (views_.begun()) checkpoints_.SetCarried(views_.Carried());
}

void Coordinator::ReportLostResiduals(const Member& worker, const std::string& what,
                                      std::span<const uint32_t> owners) {
  const std::string gone = timeline_->residuals.Take(worker.id, owners);
  if (gone.empty()) return;
  actions_.AddNotice(
      absl::StrCat("residuals ", worker.id, " ", views_.places().number(), " ", what),
      absl::StrCat(worker.NameAndPlace(), " ", what, "; this loses ", gone));
}

// Starts the next timeline once enough nodes have joined and all complete checkpoints are
// committed. A checkpoint that misses only residuals of present workers usually completes soon; it
// is waited for up to failure_timeout_.
void Coordinator::RollBack(absl::Time now) {
  if (checkpoints_.AwaitsResiduals()) {
    if (stage_.Lasts(now) < failure_timeout_) return;
    checkpoints_.GiveUpResiduals();
    actions_.AddNotice("given up", absl::StrCat("workers have not written their error-feedback "
                                                "residuals for ",
                                                absl::FormatDuration(failure_timeout_),
                                                ": checkpoints are used without them"));
  }
  if (!checkpoints_.idle()) return;
  if (checkpoints_.AllIsSaved()) {
    actions_.AddNotice("saved",
                       "the checkpoint has all steps: only the last evaluation is missing");
    return Finish(now);
  }
  const std::vector<uint32_t> servers = membership_.ServersAgain();
  if (servers.empty() || leaving_.WorkersThatStay().size() < leaving_.NeededToRollBack(WORKER)) {
    return;
  }
  stage_.BeginTimeline();
  TimelineStart start = checkpoints_.newest();
  // Error-feedback residuals that the checkpoint lacks; a start from scratch restores none anyway.
  const std::string gone =
      start.restore_path.empty() ? "" : timeline_->residuals.TakeAllBut(start.residuals);
  if (!gone.empty()) {
    actions_.AddNotice(absl::StrCat("residuals ", timeline_->start.number),
                       absl::StrCat("the job rolled back without ", gone));
  }
  const bool stopping = timeline_->end.stop_requested();
  start.number = timeline_->start.number + 1;
  timeline_ = std::make_unique<Timeline>(config(), std::move(start));
  if (stopping) timeline_->end.RequestStop();
  membership_.ForEach([](Member& member) {
    member.ready = member.started = member.pausing = member.finished = false;
    member.reported.reset();
  });
  checkpoints_.BeginTimeline(*timeline_);
  early_stop_.GoBackTo(timeline_->start.version);
  tracing_.GiveUp();
  IssueTimeline(servers);
  actions_.Add(TimelineBegun{timeline_->start.number, timeline_->start.version});
}

}  // namespace tug
