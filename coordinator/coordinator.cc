#include "coordinator/coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "checkpoint/checkpoint.h"
#include "coordinator/shown_text.h"
#include "proto/sync_mode.h"
#include "proto/trace_messages.h"
#include "proto/wire.h"

namespace tug {
namespace {

// A worker's memory, and what of it is activations beside what the literature counts for them.
std::string PredictionText(const NodeCounters& counters) {
  const auto megabytes = [](uint64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  std::string text = absl::StrFormat("memory of a worker: %.1f MB predicted",
                                     megabytes(counters.predicted_memory_bytes()));
  if (counters.predicted_activation_bytes() > 0) {
    absl::StrAppendFormat(&text, ", %.1f MB of it activations",
                          megabytes(counters.predicted_activation_bytes()));
  }
  if (counters.literature_activation_bytes() > 0) {
    absl::StrAppendFormat(&text, " (34 s b h + 5 a s^2 b a layer: %.1f MB)",
                          megabytes(counters.literature_activation_bytes()));
  }
  return text;
}

// A gap between ticks that is longer than this part of the failure timeout is a pause: several
// shorter ones, with no heartbeat heard between them, do not add up to a loss.
constexpr int kPausesInTimeout = 4;
// A shorter gap is a late tick, not a pause.
constexpr absl::Duration kShortestPause = absl::Milliseconds(100);

// A step in which whatever was lost has been sent again so often has stalled.
constexpr int kStallResends = 10;
constexpr absl::Duration kShortestStall = absl::Seconds(5);

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options)
    : options_(std::move(options)),
      failure_timeout_(absl::Milliseconds(options_.config.fault().failure_timeout_ms())),
      own_pauses_(std::max(failure_timeout_ / kPausesInTimeout, kShortestPause)),
      membership_(options_.config.cluster(), failure_timeout_),
      blocks_(options_.config, options_.layout),
      timeline_(std::make_unique<Timeline>(options_.config, options_.start)),
      evals_(options_.past_evals),
      traced_(TracedClocks(options_.config.trace(), options_.start.version)),
      places_({.virtual_workers = options_.config.cluster().virtual_workers(),
               .workers = options_.config.cluster().workers(),
               .on_worker_loss = options_.config.fault().on_worker_loss()}),
      servers_wanted_(options_.config.cluster().servers()),
      workers_wanted_(options_.config.cluster().workers()),
      newest_start_(options_.start),
      wait_(std::max(kStallResends * absl::Milliseconds(options_.config.comm().resend_ms()),
                     kShortestStall)) {
  newest_best_ = options_.best;
  best_.emplace(options_.config, newest_best_);
  RecallEvaluations();
}

absl::Status Coordinator::Accepts(const RegisterRequest& request) const {
  const std::string node = absl::StrCat("the ", KindName(request.kind()), " (",
                                        Shown(request.host()), ", pid ", request.pid(), ")");
  if (request.protocol_version() != kControlVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the coordinator speaks control protocol ", kControlVersion, ", ", node, " ",
                     request.protocol_version(), ": run the same version of tug everywhere"));
  }
  if (request.job_fingerprint() != 0 && options_.fingerprint != 0 &&
      request.job_fingerprint() != options_.fingerprint) {
    return absl::FailedPreconditionError(
        absl::StrCat("the configuration of ", node,
                     " is not that of the coordinator: give both the same job file and --set "
                     "values, or leave --job out"));
  }
  const uint32_t workers = options_.config.cluster().workers();
  if (request.workers_started() != 0 && request.workers_started() != workers) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the environment has WORLD_SIZE=", request.workers_started(), ", and the job has ", workers,
        workers == 1 ? " worker" : " workers", ": start as many, set cluster.workers=",
        request.workers_started(), " for the coordinator, or unset RANK and WORLD_SIZE"));
  }
  if (phase_ == FAILED) {
    return absl::FailedPreconditionError(absl::StrCat("the job has failed: ", Failure()));
  }
  if (phase_ == DONE) {
    return absl::OutOfRangeError("the job has ended: start the coordinator again for another run");
  }
  return absl::OkStatus();
}

absl::StatusOr<RegisterReply> Coordinator::OnRegister(const RegisterRequest& request,
                                                      absl::Time now) {
  if (const absl::Status accepted = Accepts(request); !accepted.ok()) {
    membership_.StopWaiting(request);
    EndIfEveryoneKnows(now);
    return accepted;
  }
  RETURN_IF_ERROR(blocks_.Admit(request));
  const bool known = membership_.Knows(request);
  const absl::StatusOr<uint32_t> id = membership_.Register(request, now);
  if (membership_.OfKind(WORKER).empty()) blocks_.ForgetDeclared();
  RETURN_IF_ERROR(id.status());
  if (!known) {
    Keep(now, [&](JournalRecord& record) { *record.mutable_registered() = request; });
    Advance(now);
  }
  RegisterReply reply;
  reply.set_node_id(*id);
  reply.set_job(options_.job);
  *reply.mutable_config() = options_.config;
  reply.set_run_dir(options_.run_dir);
  return reply;
}

absl::StatusOr<HeartbeatReply> Coordinator::OnHeartbeat(const HeartbeatRequest& request,
                                                        absl::Time now) {
  Member* member = membership_.Find(request.node_id());
  if (member == nullptr || request.job() != options_.job) {
    return absl::NotFoundError(absl::StrCat(
        "node ", request.node_id(), " is not a member of this job (any more): start it again"));
  }
  member->last_heard = now;
  Watch(*member, request, now);
  if (IsEndpoint(request.metrics_endpoint())) member->metrics_endpoint = request.metrics_endpoint();
  if (!request.failure().empty()) member->told_of_end = true;
  if (const auto fresh = WhatIsNew(*member, request); fresh.has_value()) {
    Keep(now, [&](JournalRecord& record) { *record.mutable_heartbeat() = *fresh; });
    if (Ended()) {
      AbsorbParts(*member, *fresh, now);
    } else if (!fresh->failure().empty()) {
      Fail(absl::StrCat(member->Name(), " failed: ", fresh->failure()), now);
    } else {
      Absorb(*member, *fresh, now);
    }
    Advance(now);
  }
  return ReplyTo(*member, request.known_view(), now);
}

void Coordinator::Absorb(Member& member, const HeartbeatRequest& request, absl::Time now) {
  membership_.OnHeard(member.id);
  // Monotone, so that a delayed or repeated heartbeat takes nothing back.
  member.known_view = std::max(member.known_view, request.known_view());
  const bool newest = view_.has_value() && request.known_view() == view_->number();
  if (request.ready() && newest && !member.ready) {
    member.ready = true;
    member.ready_counters = request.counters();
  }
  member.trace_sent |= request.trace_sent();
  member.schedule = std::max(member.schedule, request.schedule());
  for (const Notice& notice : request.notices()) AddNotice(notice.key(), notice.text());
  AbsorbLeaving(member, request);
  if (member.kind == SERVER) {
    if (holders_.has_value()) holders_->AddReport(member.id, request.copied_placement());
    places_.AddClocks(member.id, request.clocks_of_view(),
                      {request.clocks().data(), static_cast<size_t>(request.clocks_size())});
  }
  // What is of another timeline is void.
  if (!view_.has_value() || request.known_view() < timeline_view_) return;
  if (rolling_back_) return AbsorbParts(member, request, now);
  const bool may_pause = timeline_->end.pausing() || member.leaving;
  const bool pauses = newest && request.pausing() && may_pause;
  if (pauses && !member.pausing) {
    member.started = false;  // the step that it had begun may have been put back
  }
  if (request.started()) {
    member.clock = member.started ? std::max(member.clock, request.clock()) : request.clock();
    member.started = true;
  }
  member.pausing |= pauses;
  member.finished |= newest && request.finished();
  for (const StepReport& report : request.steps()) {
    if (!CanHaveBegun(report.virtual_worker(), report.clock())) continue;
    timeline_->progress.AddStep(member.id, report);
    const uint32_t virtual_worker = report.virtual_worker();
    const std::vector<uint32_t>& owners = places_.owners();
    if (virtual_worker < owners.size() && owners[virtual_worker] == member.id) {
      timeline_->residuals.Add(member.id, report);
    }
    if (!report.skipped() && report.clock() >= member.reported.value_or(0)) member.newest = report;
    member.reported = std::max(member.reported.value_or(0), report.clock());
  }
  for (const EvalReport& report : request.evals()) timeline_->progress.AddEval(report);
  TakeProgress(now);
  AbsorbParts(member, request, now);
}

bool Coordinator::CanHaveBegun(uint32_t virtual_worker, uint64_t clock) const {
  const std::vector<uint64_t>& final_clocks = timeline_->end.final_clocks();
  return clock < (virtual_worker < final_clocks.size() ? final_clocks[virtual_worker]
                                                       : options_.config.train().steps());
}

void Coordinator::TakeProgress(absl::Time now) {
  const std::vector<StepMetrics> steps = timeline_->progress.TakeSteps();
  for (const StepMetrics& metrics : steps) {
    actions_.emplace_back(StepCompleted{metrics});
    timeline_->finite_loss.Add(metrics);
  }
  if (timeline_->finite_loss.exceeded()) Fail(timeline_->finite_loss.Error(), now);
  Tune(steps);
  for (const EvalMetrics& eval : timeline_->progress.TakeEvals()) OnEval(eval, now);
}

void Coordinator::OnEval(const EvalMetrics& eval, absl::Time now) {
  actions_.emplace_back(EvalCompleted{eval});
  evals_.push_back(eval);
  if (const auto best = best_->AddEval(eval)) {
    newest_best_ = *best;
    actions_.emplace_back(NewBestAction{*best});
  }
  if (!early_stop_->Add(eval) || phase_ != RUNNING || timeline_->end.stop_requested()) return;
  stopped_early_ = true;
  const uint32_t in_a_row = early_stop_->without_improvement();
  if (const auto& best = early_stop_->best(); best.has_value()) {
    AddNotice("stopped early",
              absl::StrFormat("no evaluation was better than that of step %d (validation loss "
                              "%.4f) for %d in a row: the job stops early (train.patience)",
                              best->version, best->loss, in_a_row));
  } else {
    AddNotice("stopped early", absl::StrFormat("no evaluation had a finite loss, %d in a row: "
                                               "lower optimizer.learning_rate",
                                               in_a_row));
  }
  Stop(now);
}

void Coordinator::AddNotice(const std::string& key, const std::string& text) {
  if (notice_keys_.size() >= kMaxNotices || !notice_keys_.insert(key).second) return;
  actions_.emplace_back(NoticeAction{text});
}

void Coordinator::Advance(absl::Time now) {
  // One transition may be the condition of another.
  constexpr int kMostRounds = 16;
  for (int round = 0; round < kMostRounds; ++round) {
    const auto before = Mark();
    AdvanceOnce(now);
    if (Mark() == before) return;
  }
}

void Coordinator::AdvanceOnce(absl::Time now) {
  LetGoOfLeavers();
  if (!Ended() && !view_.has_value() && membership_.WorkersComplete() &&
      !membership_.FirstServers().empty()) {
    IssueFirstView();
  }
  ChangeView(now);
  if (phase_ == WAITING && view_.has_value() && !rolling_back_ &&
      EveryoneInView([](const Member& member) { return member.ready; })) {
    Go();
  }
  LookForTheEnd(now);
  CompleteTrace(now);
  const bool traced = trace_done_ || traced_.end == 0;
  const std::optional<uint64_t> final_version = timeline_->end.final_version();
  if (phase_ == RUNNING && traced && final_version.has_value() &&
      committed_version() >= *final_version && EveryVirtualWorkerIsCarried() &&
      EveryoneInView([](const Member& node) { return node.kind == SERVER || node.finished; })) {
    if (timeline_->finite_loss.never_finite()) {
      Fail(timeline_->finite_loss.Error(), now);
    } else {
      Finish(now);
    }
  }
  EndIfEveryoneKnows(now);
}

void Coordinator::Go() {
  phase_ = RUNNING;
  NodeCounters most;  // of the worker that needs most
  for (const Member* worker : membership_.OfKind(WORKER)) {
    const NodeCounters& counters = worker->ready_counters;
    if (counters.predicted_memory_bytes() > most.predicted_memory_bytes()) most = counters;
  }
  if (most.predicted_memory_bytes() > 0) AddNotice("memory", PredictionText(most));
}

void Coordinator::LookForTheEnd(absl::Time now) {
  if (phase_ != RUNNING || timeline_->end.final_version().has_value()) return;
  std::vector<VirtualWorkerPace> paces(options_.config.cluster().virtual_workers());
  const bool shrinks = options_.config.fault().on_worker_loss() == FaultConfig::SHRINK;
  for (uint32_t v = 0; v < paces.size(); ++v) {
    paces[v].begun = timeline_->StartClock(v);
    paces[v].away = shrinks && places_.owners()[v] == ViewChange::kNobody;
    paces[v].begun = std::max(paces[v].begun, least_begun_[v]);
    const std::optional<OwnPace> own = timeline_->progress.pace(v);
    if (!own.has_value()) continue;
    paces[v].begun = std::max(paces[v].begun, own->clock);
    paces[v].reported = own->clock;
    paces[v].idle =
        own->clock <= timeline_->StartClock(v) && least_begun_[v] <= timeline_->ClockBeyondStart(v);
    paces[v].step_seconds = own->seconds;
  }
  for (const WorkerAssignment& assignment : view_->workers()) {
    const Member* worker = membership_.Find(assignment.node_id());
    if (worker == nullptr || !worker->started) continue;
    for (const uint32_t v : assignment.virtual_workers()) {
      if (!CanHaveBegun(v, worker->clock)) continue;
      // A worker that pauses has reported all but the step under way. Its clock may be that of
      // another of its virtual workers, far ahead of one that it took over.
      const std::optional<OwnPace> own = timeline_->progress.pace(v);
      const uint64_t newest = std::min(worker->clock, own.has_value() ? own->clock : worker->clock);
      paces[v].begun = std::max(paces[v].begun, newest + 1);
      paces[v].idle = false;
    }
  }
  timeline_->end.Update(paces, !places_.fencing() && EveryVirtualWorkerIsCarried() &&
                                   EveryoneInView([](const Member& node) {
                                     return node.kind == SERVER || node.pausing || node.finished;
                                   }));
  FailWithoutLastCheckpoint(now);
  if (Ended()) return;
  const std::optional<uint64_t> final_version = timeline_->end.final_version();
  if (final_version.has_value() && *final_version <= timeline_->start.version) {
    Finish(now);  // nobody began a step: what there is to keep is in the checkpoint this timeline
                  // started from
  }
}

void Coordinator::Finish(absl::Time now) {
  phase_ = DONE;
  ended_at_ = now;
  GiveUpResiduals();
}

void Coordinator::Fail(const std::string& what, absl::Time now) {
  if (Ended()) return;
  phase_ = FAILED;
  ended_at_ = now;
  failure_ = what;
  GiveUpResiduals();
}

std::string Coordinator::Failure() const {
  return failure_.empty() ? "" : absl::StrCat(failure_, "; ", ResumeHint());
}

std::string Coordinator::ResumeHint() const {
  if (committed_version() == 0) return "no checkpoint was written yet: start the job again";
  const bool external = options_.config.model().external();
  return absl::StrCat("resume with: tug ", external ? "coordinator" : "train", " JOB --resume ",
                      options_.run_dir, " (step ", committed_version(), ")");
}

void Coordinator::EndIfEveryoneKnows(absl::Time now) {
  if (!Ended() || end_reported_ || committing_.has_value() || replaying_) return;
  const auto told = [](const Member& member) { return member.told_of_end; };
  const bool all_told = membership_.Every(SERVER, told) && membership_.Every(WORKER, told) &&
                        !membership_.SomebodyWaits(now);
  if (!all_told && now - ended_at_ < told_grace()) return;
  end_reported_ = true;
  actions_.emplace_back(
      JobEnded{phase_ == DONE ? absl::OkStatus() : absl::AbortedError(Failure())});
}

HeartbeatReply Coordinator::ReplyTo(Member& member, uint32_t known_view, absl::Time now) {
  HeartbeatReply reply;
  reply.set_phase(phase_);
  if (view_.has_value() && known_view < view_->number() && IsInView(member)) {
    *reply.mutable_view() = *view_;
  }
  if (places_.fencing() && !rolling_back_ && member.kind == SERVER && HoldsSegments(member)) {
    if (placement_pending_) *reply.mutable_next_view() = next_view_;
    reply.mutable_next_view()->set_number(places_.number());
    reply.mutable_next_view()->set_timeline(view_->timeline());
    if (!placement_pending_) reply.mutable_next_view()->set_placement(view_->placement());
  }
  reply.set_go(phase_ == RUNNING);
  const JobEnd& end = timeline_->end;
  reply.set_pause(phase_ == RUNNING && end.pausing());
  reply.set_final_version(end.final_version().value_or(0));
  reply.mutable_final_clocks()->Assign(end.final_clocks().begin(), end.final_clocks().end());
  reply.set_now_ns(absl::ToUnixNanos(now));
  reply.set_trace_wanted(!trace_done_ && TraceWanted());
  AddSchedule(member, reply);
  AddLeaving(member, reply);
  if (Ended()) {
    reply.set_failure(Failure());
    member.told_of_end = true;
    EndIfEveryoneKnows(now);
  }
  return reply;
}

StopReply Coordinator::OnStop(absl::Time now) {
  StopReply reply;
  if (Ended()) {
    reply.set_message(phase_ == DONE ? "the job has ended already"
                                     : absl::StrCat("the job has failed: ", Failure()));
    return reply;
  }
  Keep(now, [](JournalRecord& record) { record.mutable_stop(); });
  if (phase_ == WAITING) {
    const bool first = !rolling_back_ && timeline_->start.number == options_.start.number;
    const bool saved = committed_version() > options_.start.version;
    reply.set_message(
        absl::StrCat(first ? "the job had not started; it ends now, " : "the job ends now, ",
                     saved ? absl::StrCat("with the checkpoint of step ", committed_version())
                           : "without a checkpoint of its own"));
  } else {
    reply.set_message("stopping after the step in progress, then a checkpoint");
  }
  Stop(now);
  Advance(now);
  return reply;
}

void Coordinator::Stop(absl::Time now) {
  if (phase_ != WAITING) return timeline_->end.RequestStop();
  Finish(now);
  EndIfEveryoneKnows(now);
}

void Coordinator::OnTick(absl::Time now) {
  ForgiveOwnPause(now);
  for (const uint32_t id : membership_.Silent(now, failure_timeout_)) {
    const Member* const member = membership_.Find(id);
    if (member == nullptr || Ended()) break;
    const double silence = absl::ToDoubleSeconds(now - member->last_heard);
    OnLost(id, absl::StrFormat("no heartbeat for %.1f s", silence), now);
    Advance(now);  // each loss by itself: so it is replayed
  }
  if (TraceIsOverdue(now)) {
    Keep(now, [](JournalRecord& record) { record.mutable_trace_over(); });
    EndTrace();
  }
  SeeWait(now);
  const auto before = Mark();
  Advance(now);
  if (Mark() != before) Keep(now, [](JournalRecord& record) { record.mutable_passed(); });
}

void Coordinator::ForgiveOwnPause(absl::Time now) {
  const absl::Duration pause = own_pauses_.Pass(now);
  if (pause == absl::ZeroDuration()) return;
  for (const auto& [id, unused] : membership_.members()) {
    Member& member = *membership_.Find(id);
    member.last_heard = std::min(now, member.last_heard + pause);
  }
  if (Ended()) ended_at_ = std::min(now, ended_at_ + pause);
  if (rolling_back_) rolling_back_since_ = std::min(now, rolling_back_since_ + pause);
}

void Coordinator::OnTrouble(const std::string& what, absl::Time now) {
  if (Ended()) return;
  Keep(now, [&](JournalRecord& record) { record.set_trouble(what); });
  Fail(what, now);
  Advance(now);
}

std::vector<Action> Coordinator::TakeActions() { return std::exchange(actions_, {}); }

}  // namespace tug
