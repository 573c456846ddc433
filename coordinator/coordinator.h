#ifndef TUG_COORDINATOR_COORDINATOR_H_
#define TUG_COORDINATOR_COORDINATOR_H_

// The coordinator of a job as a state machine: no thread, socket, file or clock inside.
// control_service.h binds it to gRPC and real time, simulate/ to virtual time.
//
// Life of a job:
//  1. WAITING: servers and workers register. A server learns from the first reply how many lanes to
//     bind, and registers again with their endpoints. A node lost here gives up its place. With
//     model.external the first worker says what is exchanged (job_blocks.h).
//  2. Everyone is in: view 1 (blocks, lanes, placement of segments, virtual workers) goes out in
//     heartbeat replies.
//  3. Every member has reported ready for the view: RUNNING, `go`.
//  4. Reports in heartbeats become steps, evaluations (timeline.h) and checkpoints
//     (job_checkpoints.h). With which step the job ends, and of which clock each virtual worker's
//     last one is: job_end.h.
//  5. A traced job: once the traced steps are over, nodes are asked for what they recorded, and a
//     TraceCompleted hands it on. The job does not end before (job_tracing.h).
//  6. With comm.scheduler AUTO replies carry schedules to try (schedule_tuning.h).
//  7. A node that is lost, joins later or leaves: the next view (job_views.h, leaving_nodes.h);
//     segments go from server to server. A server that is lost with segments of which nobody else
//     has a copy that is in sync: WAITING until one has joined in its place, then the next
//     timeline, from the newest checkpoint, at most fault.max_rollbacks times. With model.external,
//     and with sync.policy BACKUP, a node that is lost fails the job.
//  8. DONE when every worker has finished and the checkpoint of final_version is committed. FAILED
//     when a node reports a failure, checkpoints cannot be written, or the loss stays not finite
//     (finite_loss.h). Every node learns it with its next heartbeat.
//  9. JobEnded once every node has been told, those that wait for a place too, or after
//     told_grace().
//
// The parts own their state; this class takes the transitions that concern several of them.
// State and actions are a function of the inputs: whoever keeps them (journal.h, KeepJournal) can
// make the same coordinator again (Replay), which then takes the job up (OnTakenUp).

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
#include "coordinator/actions.h"
#include "coordinator/coordinator_options.h"
#include "coordinator/early_stop.h"
#include "coordinator/job_blocks.h"
#include "coordinator/job_checkpoints.h"
#include "coordinator/job_stage.h"
#include "coordinator/job_tracing.h"
#include "coordinator/job_views.h"
#include "coordinator/job_wait.h"
#include "coordinator/journal.h"
#include "coordinator/leaving_nodes.h"
#include "coordinator/membership.h"
#include "coordinator/schedule_tuning.h"
#include "coordinator/timeline.h"

namespace tug {

// Not thread-safe. `now` never decreases from call to call.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options);

  // Who has not asked for so long after the end is lost, and is not waited for. On a machine that
  // is busy a node may be late by some heartbeats.
  absl::Duration told_grace() const { return std::max(absl::Seconds(2), failure_timeout_); }

  // Errors: FAILED_PRECONDITION (other protocol version or configuration, job has failed),
  // OUT_OF_RANGE (it is done), and those of Membership::Register and JobBlocks::Admit.
  absl::StatusOr<RegisterReply> OnRegister(const RegisterRequest& request, absl::Time now);
  // Errors: NOT_FOUND, not a member (any more).
  absl::StatusOr<HeartbeatReply> OnHeartbeat(const HeartbeatRequest& request, absl::Time now);
  // Errors: NOT_FOUND, those of TraceCollector::Add.
  absl::StatusOr<TraceReply> OnTrace(const TraceChunk& chunk, absl::Time now);
  StatusReply OnStatus(absl::Time now) const;
  StopReply OnStop(absl::Time now);
  // Errors: NOT_FOUND, not a member; FAILED_PRECONDITION, why the job cannot go on without it.
  absl::StatusOr<DrainReply> OnDrain(uint32_t node_id, absl::Time now);
  // The connection that a node keeps open while it lives is closed.
  void OnGone(uint32_t node_id, uint64_t job, absl::Time now);
  // Time passes. Call it at least every 100 ms or so: after a much longer gap this process has
  // stood still itself, and counts nobody's silence meanwhile.
  void OnTick(absl::Time now);
  // The coordinator itself cannot go on, and why.
  void OnTrouble(const std::string& what, absl::Time now);
  // Answers a CommitCheckpointAction; each needs an answer.
  void OnCheckpointCommitted(uint64_t version, const absl::Status& status, absl::Time now);

  // Answers a StepPredictionWanted: seconds by point, or empty.
  void OnStepsPredicted(uint32_t round, std::vector<double> seconds);

  // What there is to do since the last call, in order.
  std::vector<Action> TakeActions() { return actions_.Take(); }

  // From now on every input that says something new is appended here, before the call returns;
  // null: nowhere. It outlives this.
  void KeepJournal(Journal* journal) { journal_ = journal; }
  // Obeys a record of the journal that another coordinator of these options kept: all of them, in
  // order, before anything else. What comes of it are the actions that there were, except JobEnded.
  // Errors: DATA_LOSS (a record that cannot be of this job).
  absl::Status Replay(const JournalRecord& record);
  // After Replay and KeepJournal: this one takes the job up. Members count as heard of now; what
  // had arrived of a trace is lost.
  void OnTakenUp(absl::Time now);

  Phase phase() const { return stage_.phase(); }
  const JobConfig& config() const { return options_.config; }
  // Whether a checkpoint of this version may be there by what was told so far: committed, or asked
  // for, or about to be, or committed with an error.
  bool KnowsOfCheckpoint(uint64_t version) const { return checkpoints_.MayExist(version); }

 private:
  absl::Status Accepts(const RegisterRequest& request) const;
  void Absorb(Member& member, const HeartbeatRequest& request, absl::Time now);
  HeartbeatReply ReplyTo(Member& member, uint32_t known_view, absl::Time now);
  void TakeProgress(absl::Time now);
  void OnEval(const EvalMetrics& eval, absl::Time now);

  // Takes every transition whose condition holds, until none is left.
  void Advance(absl::Time now);
  void AdvanceOnce(absl::Time now);
  // What tells whether a transition was taken.
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
  // `why`: empty, if it need not.
  void Fail(const std::string& why, absl::Time now);
  // Why the job failed, and how to resume it. Empty unless it failed. The text changes when a
  // checkpoint is committed after the failure; JobEnded waits for such a commit.
  std::string Failure() const;
  void EndIfEveryoneKnows(absl::Time now);
  void ForgiveOwnPause(absl::Time now);

  // ---- coordinator_timelines.cc ----
  void IssueFirstView();
  // A view for the timeline, with all members.
  void IssueTimeline(const std::vector<uint32_t>& servers);
  void ChangeView(absl::Time now);
  void TakeSettledView(absl::Time now);
  void OnLost(uint32_t id, const std::string& how, absl::Time now);
  void RollBack(absl::Time now);
  // The worker carries other virtual workers than before, or is gone: tells what goes with those
  // that are not its own among these owners, after `what` has happened.
  void TellResiduals(const Member& worker, const std::string& what,
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
  // The heartbeat without what would change nothing; no value: all of it. What is not named there
  // counts as new.
  std::optional<HeartbeatRequest> WhatIsNew(const Member& member,
                                            const HeartbeatRequest& request) const;
  // Of a job that has failed: what is still committed, so that less is lost. None: nothing.
  std::optional<HeartbeatRequest> PartsAfterFailure(const Member& member,
                                                    const HeartbeatRequest& request) const;

  // ---- coordinator_waits.cc ----
  // None: nothing.
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
  std::optional<ScheduleTuning> tuning_;  // with the view; none: the schedule is the job's own
  EarlyStop early_stop_;
  bool stopped_early_ = false;

  Journal* journal_ = nullptr;
  bool replaying_ = false;
  uint32_t taken_up_ = 0;  // how often
  WaitWatch wait_;         // for people
};

}  // namespace tug

#endif  // TUG_COORDINATOR_COORDINATOR_H_
