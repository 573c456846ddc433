#ifndef TUG_COORDINATOR_COORDINATOR_H_
#define TUG_COORDINATOR_COORDINATOR_H_

// The coordinator of a job as a state machine: no thread, socket, file or clock inside.
// control_service.h binds it to gRPC and real time, simulate/ to virtual time.
//
// Life of a job:
//  1. WAITING: servers and workers register; a server learns from the first reply how many lanes to
//  bind, and registers
//     again with their endpoints. A node lost here gives up its place. With model.external the
//     first worker says what is exchanged (job_blocks.h).
//  2. Everyone is in: view 1 (blocks, lanes, placement of segments, virtual workers) goes
//  out in heartbeat
//     replies.
//  3. Every member has reported ready for the view: RUNNING, `go`.
//  4. Reports in heartbeats become steps, evaluations, checkpoints. With which step the job ends,
//  and of which clock each virtual worker's last one is: job_end.h.
//  5. A traced job: once the traced steps are over, nodes are asked for what they recorded, and a
//  TraceCompleted hands it on; the job does not end before (but for kTracePatience).
//  6. With comm.scheduler AUTO replies carry schedules to try (schedule_tuning.h).
//  7. A node that is lost, joins later or leaves: the next view (view_change.h,
//     coordinator_views.cc; segments go from server to server, segment_holders.h,
//     coordinator_servers.cc). A server that is lost with segments of which nobody else has a
//     copy that is in sync: WAITING until one has joined in its place, then the next timeline,
//     from the newest checkpoint, at most fault.max_rollbacks times. With model.external, and
//     with sync.policy BACKUP, a node that is lost fails the job.
//  8. DONE when every worker has finished and the checkpoint of final_version is committed; FAILED
//  when a node reports a
//     failure, checkpoints cannot be written, or the loss stays not finite (finite_loss.h). Every
//     node learns it with its next heartbeat.
//  9. JobEnded once every node has been told, those that wait for a place too, or after
//  told_grace().
//
// State and actions are a function of the inputs: whoever keeps them (journal.h, KeepJournal) can
// make the same coordinator again (Replay), which then takes the job up (OnTakenUp).

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/own_pauses.h"
#include "checkpoint/best_checkpoint.h"
#include "coordinator/best_tracker.h"
#include "coordinator/early_stop.h"
#include "coordinator/job_blocks.h"
#include "coordinator/job_wait.h"
#include "coordinator/journal.h"
#include "coordinator/membership.h"
#include "coordinator/progress.h"
#include "coordinator/schedule_tuning.h"
#include "coordinator/segment_holders.h"
#include "coordinator/timeline.h"
#include "coordinator/trace_collector.h"
#include "coordinator/view_change.h"
#include "proto/control.pb.h"
#include "proto/journal.pb.h"
#include "proto/manifest.pb.h"

namespace tug {

// What the machine asks to be done.
//
// One commit at a time: the next is asked for once OnCheckpointCommitted has answered the last, and
// after the NewBestAction that came of it. Actions carried out in order then never delete the
// checkpoint that is, or becomes, the best.
struct CommitCheckpointAction {
  Manifest manifest;
  double pause_seconds = 0;  // training stood still for this long at most
  double write_seconds = 0;
  // Earlier versions whose evaluation is still to come: they may turn out to be the best.
  std::vector<uint64_t> held;
};
struct StepCompleted {
  StepMetrics metrics;
};
struct EvalCompleted {
  EvalMetrics metrics;
};
struct NoticeAction {
  std::string text;
};
// The checkpoint that is the best one from now on: an evaluation of its version has the lowest
// loss.
struct NewBestAction {
  BestCheckpoint best;
};
// Once, of a traced job; not if it fails before.
struct TraceCompleted {
  JobTrace trace;
};
// With comm.scheduler AUTO. A StepPredictionWanted is answered with OnStepsPredicted.
struct TuningAction {
  TuningEvent event;
};
// The job has gone back to `version`; what is told from here on is of the timeline `number`.
struct TimelineBegun {
  uint32_t number = 0;
  uint64_t version = 0;
};
// OK, or why the job failed and what to do. The last action; every commit has been answered.
struct JobEnded {
  absl::Status status;
};
using Action = std::variant<CommitCheckpointAction, StepCompleted, EvalCompleted, NoticeAction,
                            NewBestAction, TraceCompleted, TuningAction, TimelineBegun, JobEnded>;

struct CoordinatorOptions {
  JobConfig config;  // resolved and validated
  // Of the job file as nodes load it (proto/job_config.h); 0 = not checked.
  uint64_t fingerprint = 0;
  BlockLayout layout;   // model.external: that of the restored checkpoint, or empty
  uint64_t job = 0;     // id, random
  std::string run_dir;  // absolute
  TimelineStart start;  // `version` below train.steps
  // Of the run that goes on, in order: its evaluations up to `start.version`, and its best
  // checkpoint.
  std::vector<EvalMetrics> past_evals;
  std::optional<BestCheckpoint> best;
  // Whether somebody predicts step times, for comm.scheduler AUTO.
  bool predicts_steps = false;
  std::string data_notice;  // of the data, and of what is resumed, for people; may be empty
};

// The first record of a job's journal, and back.
JournalBegin BeginOf(const CoordinatorOptions& options);
CoordinatorOptions OptionsOf(const JournalBegin& begin);

// Not thread-safe. `now` never decreases from call to call.
class Coordinator {
 public:
  // For the next part of a trace, once the traced steps are over.
  static constexpr absl::Duration kTracePatience = absl::Seconds(30);
  static constexpr size_t kMaxNotices = 1000;  // further ones are dropped
  static constexpr uint32_t kManifestFormat = 1;

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
  std::vector<Action> TakeActions();

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

  Phase phase() const { return phase_; }
  const JobConfig& config() const { return options_.config; }
  // Whether a checkpoint of this version may be there by what was told so far: committed, or asked
  // for, or about to be, or committed with an error.
  bool KnowsOfCheckpoint(uint64_t version) const;

  // URL of the page that people watch it by; told in StatusReply.
  void SetPage(std::string url) { page_ = std::move(url); }

 private:
  bool Ended() const { return phase_ == DONE || phase_ == FAILED; }
  absl::Status Accepts(const RegisterRequest& request) const;
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
  // What tells whether a transition was taken.
  auto Mark() const {
    return std::tuple(phase_, places_.number(), places_.fencing(),
                      view_.has_value() ? view_->number() : 0, timeline_->start.number,
                      timeline_->end.final_version(), timeline_->end.pausing(), rolling_back_,
                      trace_done_, committing_, actions_.size());
  }
  // REQUIRES: the job is done, and its last checkpoint is not of the last step that was reported.
  void TellOnlyWhatIsSaved(StatusReply& reply) const;
  // What is told to people who watch, and otherwise counts for nothing.
  static void Watch(Member& member, const HeartbeatRequest& request, absl::Time now);
  void Absorb(Member& member, const HeartbeatRequest& request, absl::Time now);
  // Whether a virtual worker can have taken the step, or begun it, as the job's end stands.
  bool CanHaveBegun(uint32_t virtual_worker, uint64_t clock) const;
  void TakeProgress(absl::Time now);

  // ---- coordinator_checkpoints.cc ----
  bool IsWanted(const Member& member, const CheckpointPart& part) const;
  // Whether the job cannot go on where this part was not written.
  bool Matters(const Member& member, const CheckpointPart& failed) const;
  void AbsorbParts(const Member& member, const HeartbeatRequest& request, absl::Time now);
  // It is whole.
  void AddCommit(const CollectedCheckpoint& whole);
  void SkipCommits();
  // Other workers carry virtual workers, or somebody has gone: whose residual a checkpoint waits
  // for.
  void SetCarried();
  // Checkpoints that lack nothing else are whole without what workers have not written yet.
  void GiveUpResiduals();
  // Asks for the next commit, if none is being carried out.
  void ReleaseCommit();
  // A part of it was not written, or it was not committed: the job goes on without it, unless it is
  // the last one or one too many in a row.
  void OnCheckpointFailed(uint64_t version, const std::string& why, absl::Time now);
  // Of one that has failed, once it is known to be the job's last.
  void FailWithoutLastCheckpoint(absl::Time now);
  // Whether what nodes have written of checkpoints by a failure is still committed.
  bool CommitsAfterFailure() const;

  void OnEval(const EvalMetrics& eval, absl::Time now);
  void AddNotice(const std::string& key, const std::string& text);
  // Takes every transition whose condition holds, until none is left.
  void Advance(absl::Time now);
  void AdvanceOnce(absl::Time now);
  void Stop(absl::Time now);
  // Whether the job goes on when a node is lost.
  bool Recovers() const;
  void OnLost(uint32_t id, const std::string& how, absl::Time now);
  // What the loss of a worker means.
  std::string LossText() const;
  // The worker carries other virtual workers than before, or is gone: tells what goes with those
  // that are not its own among these owners, after `what` has happened.
  void TellResiduals(const Member& worker, const std::string& what,
                     std::span<const uint32_t> owners);
  void IssueFirstView();
  // A view for the timeline, with all members.
  void IssueTimeline(const std::vector<uint32_t>& servers);
  // Number and workers of the view.
  void SetPlaces(const std::vector<uint64_t>& start_clocks);
  // The server beside each worker of the view.
  void PairWithServers();
  void ChangeView(absl::Time now);
  // The view that was prepared is the view.
  void TakeSettledView(absl::Time now);
  void RollBack(absl::Time now);
  // What virtual workers' pushes had left out and the checkpoint that the job goes back to lacks.
  void TellWhatIsNotRestored();

  // ---- coordinator_servers.cc ----
  // Whether segments go from server to server.
  bool MovesSegments() const;
  // Workers that are to carry virtual workers, ascending.
  std::vector<uint32_t> WorkersThatStay() const;
  // Whether it has finished and reported the step it was in when it was told to pause.
  static bool HasPausedToLeave(const Member& member);
  // Gives places to servers that join, and takes the next step toward the holders that are wanted.
  void ChangeServers();
  void GivePlaces();
  // Of a new timeline: who holds what.
  void BeginHolders(const std::vector<uint32_t>& servers);
  std::vector<uint32_t> WeightsOf(const std::vector<uint32_t>& servers) const;
  // Once a change with another placement has begun: `next_view_`.
  void PrepareNextView();
  // Lanes, and who holds what in them.
  void FillPlacement(View& view) const;
  // The job goes on with the copies of what the server held, or knows why not.
  bool OutlivesServer(const Member& server, const std::string& lost);
  bool HoldsSegments(const Member& member) const;
  // Members of a kind that are there to stay, that of number `but` left out.
  uint32_t CountStaying(NodeKind kind, uint32_t but = 0) const;
  uint32_t OthersThatStay(const Member& member) const {
    return CountStaying(member.kind, member.id);
  }
  // How many of a kind a job needs to go back to a checkpoint.
  uint32_t NeededToRollBack(NodeKind kind) const;
  // Whether the job waits for nodes, and for another one should this one go.
  bool IsWaitedFor(const Member& member) const;
  // OK, or why the job cannot go on without it.
  absl::Status MayLeave(const Member& member) const;
  // It wants to go, has nothing left that anybody lacks, and those that are to stay are there.
  bool MayBeLetGo(const Member& member) const;
  // From now on its heartbeats are answered with `leave`; whether another one is to be started in
  // its place is decided now.
  void LetGoOfLeavers();
  void BeginLeaving(Member& member);
  // What a heartbeat says of it.
  static constexpr char kStaysKey[] = "stays ";  // of the notice that it cannot leave
  void AbsorbLeaving(Member& member, const HeartbeatRequest& request);
  void AddLeaving(const Member& member, HeartbeatReply& reply) const;
  void OnLeft(const Member& member);
  void AddServerStatus(const Member& member, NodeStatus& node) const;

  // ---- coordinator_waits.cc ----
  // None: nothing.
  std::optional<WaitReason> WaitsFor() const;
  WaitReason WaitsToBegin() const;
  WaitReason WaitsToRollBack() const;
  // "server 1, worker 3"
  std::string NotReady() const;
  void SeeWait(absl::Time now);
  void AddWait(absl::Time now, StatusReply& reply) const;

  // The checkpoint of the last step is committed.
  bool AllIsSaved() const;
  // What evaluations before the timeline's start say.
  void RecallEvaluations();
  bool IsInView(const Member& member) const;
  bool EveryoneInView(const std::function<bool(const Member&)>& holds) const;
  bool EveryVirtualWorkerIsCarried() const;
  // Newest usable checkpoint; 0 = none.
  uint64_t committed_version() const { return newest_start_.version; }
  void Go();
  // With comm.scheduler AUTO.
  void Tune(const std::vector<StepMetrics>& steps);
  void AddSchedule(const Member& member, HeartbeatReply& reply) const;
  void LookForTheEnd(absl::Time now);
  // Whether nodes are to send what they recorded.
  bool TraceWanted() const;
  void CompleteTrace(absl::Time now);
  // Those that have not sent theirs have had kTracePatience.
  bool TraceIsOverdue(absl::Time now) const;
  void EndTrace();
  void ForgiveOwnPause(absl::Time now);
  void Finish(absl::Time now);
  void Fail(const std::string& what, absl::Time now);
  // Why the job failed, and how to resume it. Empty unless it failed. The text changes when a
  // checkpoint is committed after the failure; JobEnded waits for such a commit.
  std::string Failure() const;
  // "resume with: ..."
  std::string ResumeHint() const;
  void EndIfEveryoneKnows(absl::Time now);
  HeartbeatReply ReplyTo(Member& member, uint32_t known_view, absl::Time now);

  const CoordinatorOptions options_;
  const absl::Duration failure_timeout_;
  OwnPauses own_pauses_;
  Membership membership_;
  JobBlocks blocks_;
  std::unique_ptr<Timeline> timeline_;   // never null
  std::vector<EvalMetrics> evals_;       // that count, those of the run that goes on too
  std::optional<EarlyStop> early_stop_;  // there is one, as of these
  std::optional<BestTracker> best_;
  std::optional<BestCheckpoint> newest_best_;
  const TraceRange traced_;  // clocks; empty without tracing
  TraceCollector traces_;
  std::optional<ScheduleTuning> tuning_;  // with the view; none: the schedule is the job's own

  Phase phase_ = WAITING;
  ViewChange places_;
  std::optional<View> view_;
  std::optional<SegmentHolders> holders_;  // with the view
  // The change under way, or settled and not taken yet, is one of who holds what; then
  // `next_view_` says it.
  bool placement_pending_ = false;
  View next_view_;
  // Nodes that a job waits for after it was interrupted (workers: with WAIT). Fewer when one has
  // left in order: nobody starts another in its place. They do not grow again: who joins may come
  // in place of a node whose loss is not known yet. Spares are given a place up to this number.
  uint32_t servers_wanted_;
  uint32_t workers_wanted_;
  bool copies_were_lost_ = false;  // until there are as many again as there should be
  uint32_t timeline_view_ = 0;     // number of the timeline's first view
  // By virtual worker: what some segment may have of it, whoever carries it. One that goes to
  // another worker takes the step again where that goes on, as does a run that goes on.
  std::vector<uint64_t> least_begun_;
  bool rolling_back_ = false;  // the timeline has ended, the next one waits for members
  absl::Time rolling_back_since_;
  uint32_t rollbacks_ = 0;
  TimelineStart newest_start_;  // where the next timeline would begin; `number` says nothing
  bool stopped_early_ = false;
  std::optional<uint64_t> committing_;  // asked for, not answered
  std::vector<uint64_t> committing_clocks_;
  std::vector<uint32_t> committing_residuals_;
  std::deque<CommitCheckpointAction> waiting_commits_;  // whole, in order; `held` comes last
  // Since when the next part of a trace is waited for; none: nothing is.
  std::optional<absl::Time> trace_heard_;
  bool trace_done_ = false;
  Journal* journal_ = nullptr;
  bool replaying_ = false;
  uint32_t taken_up_ = 0;  // how often
  std::string failure_;
  absl::Time ended_at_;
  bool end_reported_ = false;
  WaitWatch wait_;  // for people
  std::string page_;
  std::set<std::string> notice_keys_;
  std::vector<Action> actions_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_COORDINATOR_H_
