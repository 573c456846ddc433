// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_COORDINATOR_H_
#define TUG_COORDINATOR_COORDINATOR_H_

// State machine of a job's coordinator: no thread, socket, file or clock inside.
// service/control_service.h binds it to gRPC and real time, lab/simulate/ to virtual time.
//
// Life of a job:
//  1. WAITING: servers and workers register. A server learns from the first reply how many lanes to
//     bind, then registers again with their endpoints. A node lost here frees its slot. With
//     model.external the first worker declares the blocks (job_blocks.h).
//  2. All nodes have joined: view 1 (blocks, lanes, placement of segments, virtual workers) is sent
//     in heartbeat replies.
//  3. All members have reported ready for the view: RUNNING, `go`.
//  4. Reports in heartbeats become steps, evaluations (timeline.h) and checkpoints
//     (job_checkpoints.h). job_end.h determines the last step and each virtual worker's last clock.
//  5. Traced jobs: after the traced steps, nodes are asked for their recordings, which become a
//     TraceCompleted. The job does not end before that (job_tracing.h).
//  6. With comm.scheduler AUTO, replies carry schedules to try (schedule_tuning.h).
//  7. A node that is lost, joins later or leaves causes the next view (job_views.h,
//     leaving_nodes.h); segments move between servers. If a server is lost with a segment that has
//     no other in-sync replica: WAITING until a replacement has joined, then the next timeline,
//     from the newest checkpoint, at most fault.max_rollbacks times. With model.external or
//     sync.policy BACKUP, losing a node fails the job.
//  8. DONE when all workers have finished and the checkpoint of final_version is committed. FAILED
//     when a node reports a failure, checkpoints cannot be written, or the loss stays not finite
//     (finite_loss.h). Nodes learn it with their next heartbeat.
//  9. JobEnded once all nodes have been notified, including those that wait for a slot, or after
//     told_grace().
//
// The parts own their state; this class makes the transitions that concern several of them. State
// and actions are a function of the inputs: a process that keeps them (journal.h, KeepJournal) can
// rebuild the same coordinator (Replay), which then recovers the job (OnTakenUp).

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/own_pauses.h"
#include "blocks/job_blocks.h"
#include "coordinator/checkpoints/job_checkpoints.h"
#include "coordinator/journal.h"
#include "coordinator/membership/actions.h"
#include "coordinator/membership/coordinator_options.h"
#include "coordinator/membership/job_stage.h"
#include "coordinator/membership/job_tracing.h"
#include "coordinator/membership/job_views.h"
#include "coordinator/membership/job_wait.h"
#include "coordinator/membership/leaving_nodes.h"
#include "coordinator/membership/membership.h"
#include "coordinator/progress/early_stop.h"
#include "coordinator/progress/schedule_tuning.h"
#include "coordinator/progress/timeline.h"

namespace tug {

// Not thread-safe. `now` never decreases between calls.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options);

  // A node that has sent no heartbeat for this long after the end is not waited for. On a busy
  // machine a node may be late by several heartbeats.
  absl::Duration told_grace() const { return std::max(absl::Seconds(2), failure_timeout_); }

  // Errors: FAILED_PRECONDITION (other protocol version or configuration, or the job has failed),
  // OUT_OF_RANGE (the job is done), and those of Membership::Register and JobBlocks::Admit.
  absl::StatusOr<RegisterReply> OnRegister(const RegisterRequest& request, absl::Time now);
  // Errors: NOT_FOUND: not a member, or no longer.
  absl::StatusOr<HeartbeatReply> OnHeartbeat(const HeartbeatRequest& request, absl::Time now);
  // Errors: NOT_FOUND, and those of TraceCollector::Add.
  absl::StatusOr<TraceReply> OnTrace(const TraceChunk& chunk, absl::Time now);
  StatusReply OnStatus(absl::Time now) const;
  StopReply OnStop(absl::Time now);
  // `node`: its name. Errors: NOT_FOUND: not a member; FAILED_PRECONDITION: why the job cannot
  // continue without it, or has ended.
  absl::StatusOr<DrainReply> OnDrain(const std::string& node, absl::Time now);
  // A node's presence connection, open while the node lives, was closed.
  void OnGone(uint32_t node_id, uint64_t job, absl::Time now);
  // Advances time. Call at least every 100 ms or so: a much longer gap is a pause of this process,
  // which does not count as silence of the nodes.
  void OnTick(absl::Time now);
  // Fails the job, since the coordinator process itself cannot continue; `what`: the reason.
  void OnTrouble(const std::string& what, absl::Time now);
  // Reports the result of a CommitCheckpointAction. Each needs exactly one call.
  void OnCheckpointCommitted(uint64_t version, const absl::Status& status, absl::Time now);

  // Answers a StepPredictionWanted: seconds by point, or empty.
  void OnStepsPredicted(uint32_t round, std::vector<double> seconds);

  // Actions to execute since the last call, in order.
  std::vector<Action> TakeActions() { return actions_.Take(); }

  // From now on appends every input that changes state to `journal` before the call returns. Null:
  // none. REQUIRES: `journal` outlives this object.
  void KeepJournal(Journal* journal) { journal_ = journal; }
  // Applies a record from the journal of a coordinator with the same options: all records, in
  // order, before any other call. Produces the actions of the original run, except JobEnded.
  // Errors: DATA_LOSS (the record cannot belong to this job).
  absl::Status Replay(const JournalRecord& record);
  // Recovers the job; call after Replay and KeepJournal. Every member counts as just heard from. A
  // trace that was being collected is lost.
  void OnTakenUp(absl::Time now);

  Phase phase() const { return stage_.phase(); }
  const JobConfig& config() const { return options_.config; }
  // Whether a checkpoint of this version may exist: committed, requested, queued, or committed with
  // an error.
  bool KnowsOfCheckpoint(uint64_t version) const { return checkpoints_.MayExist(version); }

 private:
  absl::Status Accepts(const RegisterRequest& request) const;
  // Adds a notice if the node has the name of a node that was lost or has left.
  void ReportReplacement(const Member& node);
  void Absorb(Member& member, const HeartbeatRequest& request, absl::Time now);
  HeartbeatReply ReplyTo(Member& member, uint32_t known_view, absl::Time now);
  void TakeProgress(absl::Time now);
  void OnEval(const EvalMetrics& eval, absl::Time now);

  // Makes every transition whose condition holds, until none is left.
  void Advance(absl::Time now);
  void AdvanceOnce(absl::Time now);
  // State whose change shows that a transition was made.
  auto Mark() const {
    return std::tuple(phase(), stage_.rolling_back(), views_.places().number(),
                      views_.places().fencing(), views_.number(), timeline_->start.number,
                      timeline_->end.final_version(), timeline_->end.pausing(), tracing_.done(),
                      checkpoints_.committing(), actions_.size());
  }
  void Go();
  void LookForTheEnd(absl::Time now);
  void Stop(absl::Time now);
  std::string WhatIsLeft() const;
  void Finish(absl::Time now);
  // No effect if `why` is empty or the job has ended.
  void Fail(const std::string& why, absl::Time now);
  // Why the job failed, and how to resume it; empty unless it failed. The text changes when a
  // checkpoint is committed after the failure; JobEnded waits for such a commit.
  std::string Failure() const;
  void EndIfEveryoneKnows(absl::Time now);
  void ForgiveOwnPause(absl::Time now);

  // ---- coordinator_timelines.cc ----
  void IssueFirstView();
  // Issues the first view of the timeline, with all members.
  void IssueTimeline(const std::vector<uint32_t>& servers);
  void ChangeView(absl::Time now);
  void TakeSettledView(absl::Time now);
  void OnLost(uint32_t id, const std::string& how, absl::Time now);
  void RollBack(absl::Time now);
  // Adds a notice of the residuals lost with the virtual workers that `worker` no longer has among
  // `owners`. `what`: what happened to the worker.
  void ReportLostResiduals(const Member& worker, const std::string& what,
                           std::span<const uint32_t> owners);

  // ---- coordinator_journal.cc ----
  // Appends a record to the journal.
  template <typename Fill>
  void Keep(absl::Time now, Fill fill) {
    if (journal_ == nullptr) return;
    JournalRecord record;
    record.set_time_ns(absl::ToUnixNanos(now));
    fill(record);
    journal_->Append(record);
  }
  // Returns the heartbeat without fields that would have no effect; none if nothing is left. A
  // field that it does not name counts as new.
  std::optional<HeartbeatRequest> WhatIsNew(const Member& member,
                                            const HeartbeatRequest& request) const;
  // After a failure: the checkpoint parts that are still committed, so that less is lost; none:
  // nothing.
  std::optional<HeartbeatRequest> PartsAfterFailure(const Member& member,
                                                    const HeartbeatRequest& request) const;

  // ---- coordinator_waits.cc ----
  // What the job waits for; none: nothing.
  std::optional<WaitReason> WaitsFor() const;
  void SeeWait(absl::Time now, WaitWatch& wait) const;
  void AddWait(absl::Time now, StatusReply& reply) const;

  const CoordinatorOptions options_;
  const absl::Duration failure_timeout_;
  OwnPauses own_pauses_;
  ActionQueue actions_;
  JobStage stage_;
  Membership membership_;
  JobBlocks blocks_;
  JobViews views_;
  LeavingNodes leaving_;
  std::unique_ptr<Timeline> timeline_;  // never null
  JobCheckpoints checkpoints_;
  JobTracing tracing_;
  std::optional<ScheduleTuning>
      tuning_;  // created with the first view; none: the job's own schedule
  EarlyStop early_stop_;
  bool stopped_early_ = false;

  Journal* journal_ = nullptr;
  bool replaying_ = false;
  uint32_t taken_up_ = 0;  // number of recoveries
  WaitWatch wait_;         // for display only
};

}  // namespace tug

#endif  // TUG_COORDINATOR_COORDINATOR_H_
