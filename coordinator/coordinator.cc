// SPDX-License-Identifier: Apache-2.0
#include "coordinator/coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "config/sync_mode.h"
#include "control/trace_messages.h"
#include "coordinator/membership/next_lines.h"
#include "coordinator/membership/shown_text.h"
#include "proto/process_name.h"
#include "proto/wire.h"

namespace tug {
namespace {

// Predicted memory of a worker, its activations, and the literature's estimate of those.
std::string PredictionText(const NodeCounters& counters) {
  const auto megabytes = [](uint64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  std::string text = absl::StrFormat("predicted memory per worker: %.1f MB",
                                     megabytes(counters.predicted_memory_bytes()));
  if (counters.predicted_activation_bytes() > 0) {
    absl::StrAppendFormat(&text, ", of which activations %.1f MB",
                          megabytes(counters.predicted_activation_bytes()));
  }
  if (counters.literature_activation_bytes() > 0) {
    absl::StrAppendFormat(&text, " (textbook formula: %.1f MB)",
                          megabytes(counters.literature_activation_bytes()));
  }
  return text;
}

// Steps at the beginning of the job whose pushes a codec does not encode; 0 without a codec.
uint64_t WarmupSteps(const JobConfig& config) {
  const PushCodecConfig& codec = config.comm().push_codec();
  return codec.codec_case() == PushCodecConfig::CODEC_NOT_SET ? 0 : codec.warmup_steps();
}

// A gap between ticks longer than this fraction of the failure timeout is a pause of this process.
// So a few shorter gaps in a row, without a heartbeat in between, do not add up to a loss.
constexpr int kPausesInTimeout = 4;
// A shorter gap is a late tick, not a pause.
constexpr absl::Duration kShortestPause = absl::Milliseconds(100);

// A step that takes this many resend intervals (comm.resend_ms) has stalled.
constexpr int kStallResends = 10;
constexpr absl::Duration kShortestStall = absl::Seconds(5);

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options)
    : options_(std::move(options)),
      failure_timeout_(absl::Milliseconds(config().fault().failure_timeout_ms())),
      own_pauses_(std::max(failure_timeout_ / kPausesInTimeout, kShortestPause)),
      membership_(config().cluster(), failure_timeout_),
      blocks_(config(), options_.layout),
      views_(config(), membership_, actions_),
      leaving_(config(), stage_, views_, membership_, actions_),
      timeline_(std::make_unique<Timeline>(config(), options_.start)),
      checkpoints_(options_, blocks_, stage_, views_.places(), actions_),
      tracing_(TracedClocks(config().trace(), options_.start.version), blocks_, stage_, membership_,
               actions_),
      early_stop_(config().train()),
      wait_(std::max(kStallResends * absl::Milliseconds(config().comm().resend_ms()),
                     kShortestStall)) {
  checkpoints_.BeginTimeline(*timeline_);
  for (const EvalMetrics& eval : options_.past_evals) early_stop_.Add(eval);
}

absl::Status Coordinator::Accepts(const RegisterRequest& request) const {
  const std::string node = absl::StrCat("the ", KindName(request.kind()), " (",
                                        Shown(request.host()), ", pid ", request.pid(), ")");
  if (request.protocol_version() != kControlVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the coordinator speaks control protocol ", kControlVersion, ", ", node, " speaks ",
        request.protocol_version(), ": run the same version of tug everywhere"));
  }
  if (request.job_fingerprint() != 0 && options_.fingerprint != 0 &&
      request.job_fingerprint() != options_.fingerprint) {
    return absl::FailedPreconditionError(
        absl::StrCat("the configuration of ", node,
                     " differs from the coordinator's: pass the same job file and --set values to "
                     "both, or omit --job"));
  }
  const uint32_t workers = config().cluster().workers();
  if (request.workers_started() != 0 && request.workers_started() != workers) {
    return absl::FailedPreconditionError(absl::StrCat(
        "WORLD_SIZE=", request.workers_started(), " but the job has ", workers,
        workers == 1 ? " worker" : " workers", ": start that many, set cluster.workers=",
        request.workers_started(), " for the coordinator, or unset RANK and WORLD_SIZE"));
  }
  if (phase() == FAILED) {
    return absl::FailedPreconditionError(absl::StrCat("the job has failed: ", Failure()));
  }
  if (phase() == DONE) {
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
  const Member& node = *membership_.Find(*id);
  if (!known) {
    Keep(now, [&](JournalRecord& record) { *record.mutable_registered() = request; });
    ReportReplacement(node);
    Advance(now);
  }
  RegisterReply reply;
  reply.set_node_id(*id);
  reply.set_name(node.Name());
  reply.set_job(options_.job);
  *reply.mutable_config() = config();
  reply.set_run_dir(options_.run_dir);
  return reply;
}

void Coordinator::ReportReplacement(const Member& node) {
  if (node.name.life == 1) return;
  actions_.AddNotice(
      absl::StrCat("joined ", node.id),
      absl::StrCat(node.Name(), " (", LifeText(node.name.life), ") has joined: ", node.Place()));
}

absl::StatusOr<HeartbeatReply> Coordinator::OnHeartbeat(const HeartbeatRequest& request,
                                                        absl::Time now) {
  Member* member = membership_.Find(request.node_id());
  if (member == nullptr || request.job() != options_.job) {
    return absl::NotFoundError(
        "this node is not a member of the job, or no longer one: start it again");
  }
  member->last_heard = now;
  member->Watch(request, now);
  if (IsEndpoint(request.metrics_endpoint())) member->metrics_endpoint = request.metrics_endpoint();
  if (!request.failure().empty()) member->told_of_end = true;
  if (const auto fresh = WhatIsNew(*member, request); fresh.has_value()) {
    Keep(now, [&](JournalRecord& record) { *record.mutable_heartbeat() = *fresh; });
    if (stage_.ended()) {
      checkpoints_.AddParts(*member, *fresh);
    } else if (!fresh->failure().empty()) {
      Fail(absl::StrCat(member->NameAndPlace(), " failed: ", fresh->failure()), now);
    } else {
      Absorb(*member, *fresh, now);
    }
    Advance(now);
  }
  return ReplyTo(*member, request.known_view(), now);
}

void Coordinator::Absorb(Member& member, const HeartbeatRequest& request, absl::Time now) {
  membership_.OnHeard(member.id);
  // Monotone: a delayed or repeated heartbeat reverts nothing.
  member.known_view = std::max(member.known_view, request.known_view());
  const bool newest = views_.IsNewest(request.known_view());
  if (request.ready() && newest && !member.ready) {
    member.ready = true;
    member.ready_counters = request.counters();
  }
  member.trace_sent |= request.trace_sent();
  member.schedule = std::max(member.schedule, request.schedule());
  for (const Notice& notice : request.notices()) {
    actions_.AddNotice(notice.key(), notice.text());
  }
  leaving_.Absorb(member, request);
  views_.AddReport(member, request);
  // Reports of another timeline are void.
  if (!views_.IsOfTimeline(request.known_view())) return;
  if (stage_.rolling_back()) return Fail(checkpoints_.AddParts(member, request), now);
  const bool may_pause = timeline_->end.pausing() || member.leaving;
  const bool pauses = newest && request.pausing() && may_pause;
  if (pauses && !member.pausing) {
    member.started = false;  // the step that it had begun may have been postponed
  }
  if (request.started()) {
    member.clock = member.started ? std::max(member.clock, request.clock()) : request.clock();
    member.started = true;
  }
  member.pausing |= pauses;
  member.finished |= newest && request.finished();
  for (const StepReport& report : request.steps()) {
    if (!timeline_->CanHaveBegun(report.virtual_worker(), report.clock())) continue;
    timeline_->progress.AddStep(member.id, report);
    const uint32_t virtual_worker = report.virtual_worker();
    const std::vector<uint32_t>& owners = views_.places().owners();
    if (virtual_worker < owners.size() && owners[virtual_worker] == member.id) {
      timeline_->residuals.Add(member.id, report);
    }
    if (!report.skipped() && report.clock() >= member.reported.value_or(0)) member.newest = report;
    member.reported = std::max(member.reported.value_or(0), report.clock());
  }
  for (const EvalReport& report : request.evals()) timeline_->progress.AddEval(report);
  TakeProgress(now);
  Fail(checkpoints_.AddParts(member, request), now);
}

void Coordinator::TakeProgress(absl::Time now) {
  const std::vector<StepMetrics> steps = timeline_->progress.TakeSteps();
  for (const StepMetrics& metrics : steps) {
    actions_.Add(StepCompleted{metrics});
    timeline_->finite_loss.Add(metrics);
    if (metrics.step > 0 && metrics.step == WarmupSteps(config())) {
      actions_.AddNotice("codec in use", "pushes are encoded from now on (comm.push_codec)");
    }
  }
  if (timeline_->finite_loss.exceeded()) Fail(timeline_->finite_loss.Error(), now);
  if (tuning_.has_value()) {
    tuning_->ServersHave(views_.ScheduleOfServers());
    for (const StepMetrics& step : steps) tuning_->AddStep(step);
    for (TuningEvent& event : tuning_->TakeEvents()) actions_.Add(TuningAction{std::move(event)});
  }
  for (const EvalMetrics& eval : timeline_->progress.TakeEvals()) OnEval(eval, now);
}

void Coordinator::OnEval(const EvalMetrics& eval, absl::Time now) {
  actions_.Add(EvalCompleted{eval});
  checkpoints_.AddEval(eval);
  if (!early_stop_.Add(eval) || phase() != RUNNING || timeline_->end.stop_requested()) return;
  stopped_early_ = true;
  const uint32_t in_a_row = early_stop_.without_improvement();
  const std::optional<EvalMetrics>& best = early_stop_.best();
  actions_.AddNotice(
      "stopped early",
      best.has_value()
          ? absl::StrFormat("the last %d evaluations did not improve on step %d (validation loss "
                            "%.4f): the job stops early (train.patience)",
                            in_a_row, best->version, best->loss)
          : absl::StrFormat("the job stops early (train.patience): none of %d evaluations had a "
                            "finite loss; lower optimizer.learning_rate",
                            in_a_row));
  Stop(now);
}

void Coordinator::Advance(absl::Time now) {
  // One transition may enable another.
  constexpr int kMaxRounds = 16;
  for (int round = 0; round < kMaxRounds; ++round) {
    const auto before = Mark();
    AdvanceOnce(now);
    if (Mark() == before) return;
  }
}

void Coordinator::AdvanceOnce(absl::Time now) {
  leaving_.LetGo();
  if (!stage_.ended() && !views_.begun() && membership_.WorkersComplete() &&
      !membership_.FirstServers().empty()) {
    IssueFirstView();
  }
  ChangeView(now);
  if (phase() == WAITING && views_.begun() && !stage_.rolling_back() &&
      views_.Everyone([](const Member& member) { return member.ready; })) {
    Go();
  }
  LookForTheEnd(now);
  tracing_.Advance(timeline_->progress.step(), now);
  if (phase() == RUNNING && tracing_.done() && timeline_->end.final_version().has_value() &&
      checkpoints_.AllIsSaved() && views_.EveryVirtualWorkerIsCarried() &&
      views_.Everyone([](const Member& node) { return node.kind == SERVER || node.finished; })) {
    if (timeline_->finite_loss.never_finite()) {
      Fail(timeline_->finite_loss.Error(), now);
    } else {
      Finish(now);
    }
  }
  EndIfEveryoneKnows(now);
}

void Coordinator::Go() {
  stage_.Go();
  NodeCounters most;  // of the worker that needs most memory
  for (const Member* worker : membership_.OfKind(WORKER)) {
    const NodeCounters& counters = worker->ready_counters;
    if (counters.predicted_memory_bytes() > most.predicted_memory_bytes()) most = counters;
  }
  if (most.predicted_memory_bytes() > 0) actions_.AddNotice("memory", PredictionText(most));
  const uint64_t warmup = WarmupSteps(config());
  if (StepOfVersion(config(), options_.start.version) < warmup) {
    actions_.AddNotice("codec", absl::StrCat("pushes are FP32 up to step ", warmup,
                                             " (comm.push_codec.warmup_steps), then encoded"));
  }
}

void Coordinator::LookForTheEnd(absl::Time now) {
  JobEnd& end = timeline_->end;
  if (phase() != RUNNING || end.final_version().has_value()) return;
  const bool shrinks = config().fault().on_worker_loss() == FaultConfig::SHRINK;
  const std::vector<std::optional<uint64_t>> clocks = views_.CarriersClocks();
  std::vector<VirtualWorkerPace> paces;
  for (uint32_t v = 0; v < clocks.size(); ++v) {
    paces.push_back(timeline_->PaceOf(v, clocks[v]));
    paces.back().away = shrinks && views_.places().owners()[v] == ViewChange::kNobody;
  }
  end.Update(paces, views_.EveryVirtualWorkerIsCarried() && views_.Everyone([](const auto& node) {
    return node.kind == SERVER || node.pausing || node.finished;
  }));
  Fail(checkpoints_.WhyLastFailed(), now);
  if (stage_.ended()) return;
  if (end.final_version().has_value() && *end.final_version() <= timeline_->start.version) {
    Finish(now);  // no worker began a step: the checkpoint that this timeline started from has
                  // everything
  }
}

void Coordinator::Finish(absl::Time now) {
  stage_.Finish(now);
  checkpoints_.GiveUpResiduals();
}

void Coordinator::Fail(const std::string& why, absl::Time now) {
  if (why.empty() || stage_.ended()) return;
  stage_.Fail(why, now);
  checkpoints_.GiveUpResiduals();
}

std::string Coordinator::Failure() const {
  if (phase() != FAILED) return "";
  const uint64_t committed = checkpoints_.committed_version();
  if (committed == 0) {
    return absl::StrCat(stage_.failure(), "; no checkpoint was written yet: start the job again");
  }
  return absl::StrCat(stage_.failure(), "; resume with: ",
                      ResumeCommand(config(), options_.run_dir, options_.continue_with), " (step ",
                      committed, ")");
}

void Coordinator::EndIfEveryoneKnows(absl::Time now) {
  const bool due = stage_.ended() && !stage_.end_reported() && !replaying_;
  if (!due || checkpoints_.committing().has_value()) return;
  const auto told = [](const auto& entry) { return entry.second.told_of_end; };
  const bool all_told =
      std::ranges::all_of(membership_.members(), told) && !membership_.SomebodyWaits(now);
  if (!all_told && stage_.Lasts(now) < told_grace()) return;
  stage_.ReportEnd();
  actions_.Add(JobEnded{phase() == DONE ? absl::OkStatus() : absl::AbortedError(Failure())});
}

HeartbeatReply Coordinator::ReplyTo(Member& member, uint32_t known_view, absl::Time now) {
  const bool runs = phase() == RUNNING;
  HeartbeatReply reply;
  reply.set_phase(phase());
  views_.AddView(member, known_view, reply);
  if (!stage_.rolling_back()) views_.AddNextView(member, reply);
  reply.set_go(runs);
  const JobEnd& end = timeline_->end;
  reply.set_pause(runs && end.pausing());
  reply.set_final_version(end.final_version().value_or(0));
  reply.mutable_final_clocks()->Assign(end.final_clocks().begin(), end.final_clocks().end());
  reply.set_now_ns(absl::ToUnixNanos(now));
  reply.set_trace_wanted(tracing_.IsWanted(timeline_->progress.step()));
  if (runs && tuning_.has_value()) tuning_->AddTo(member.kind, reply);
  leaving_.AddTo(member, reply);
  if (stage_.ended()) {
    reply.set_failure(Failure());
    member.told_of_end = true;
    EndIfEveryoneKnows(now);
  }
  return reply;
}

absl::StatusOr<TraceReply> Coordinator::OnTrace(const TraceChunk& chunk, absl::Time now) {
  Member* const member = membership_.Find(chunk.node_id());
  if (member == nullptr || chunk.job() != options_.job) {
    return absl::NotFoundError("this node is not a member of the job, or no longer one");
  }
  if (tracing_.IsWanted(timeline_->progress.step())) {  // else the chunk is not needed
    RETURN_IF_ERROR(tracing_.Add(chunk, *member, now));
  }
  return TraceReply();
}

absl::StatusOr<DrainReply> Coordinator::OnDrain(const std::string& node, absl::Time now) {
  Member* const member = membership_.FindNamed(node);
  if (member == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the job has no node ", Shown(node), ": see tug status for its nodes"));
  }
  if (stage_.ended()) return absl::FailedPreconditionError("the job has ended");
  DrainReply reply;
  if (member->leaving) {
    reply.set_message(absl::StrCat(member->NameAndPlace(), " is already draining"));
    return reply;
  }
  RETURN_IF_ERROR(leaving_.MayBeDrained(*member));
  Keep(now, [&](JournalRecord& record) { record.mutable_drain()->set_name(node); });
  reply = leaving_.Drain(*member);
  Advance(now);
  return reply;
}

void Coordinator::OnStepsPredicted(uint32_t round, std::vector<double> seconds) {
  if (!tuning_.has_value()) return;
  Keep(absl::UnixEpoch(), [&](JournalRecord& record) {  // the time does not matter
    record.mutable_predicted()->set_round(round);
    record.mutable_predicted()->mutable_seconds()->Assign(seconds.begin(), seconds.end());
  });
  tuning_->SetPrediction(round, std::move(seconds));
}

void Coordinator::OnCheckpointCommitted(uint64_t version, const absl::Status& status,
                                        absl::Time now) {
  Keep(now, [&](JournalRecord& record) {
    record.mutable_committed()->set_version(version);
    record.mutable_committed()->set_code(static_cast<int>(status.code()));
    record.mutable_committed()->set_error(std::string(status.message()));
  });
  Fail(checkpoints_.OnCommitted(version, status), now);
  Advance(now);
}

StopReply Coordinator::OnStop(absl::Time now) {
  StopReply reply;
  if (stage_.ended()) {
    reply.set_message(phase() == DONE ? "the job has already ended"
                                      : absl::StrCat("the job has failed: ", Failure()));
    return reply;
  }
  Keep(now, [](JournalRecord& record) { record.mutable_stop(); });
  const bool at_once = phase() == WAITING;
  const bool first = !stage_.rolling_back() && timeline_->start.number == options_.start.number;
  Stop(now);
  Advance(now);
  reply.set_message(at_once ? absl::StrCat(first ? "the job had not started; it" : "the job",
                                           " ends now, ", WhatIsLeft())
                            : "stopping after the step in progress, then a checkpoint");
  return reply;
}

// Describes the checkpoints of a job that ends now. A checkpoint may have been held up by a missing
// node and is being written now.
std::string Coordinator::WhatIsLeft() const {
  const uint64_t committed = checkpoints_.committed_version();
  return absl::StrCat(
      committed > options_.start.version ? absl::StrCat("with the checkpoint of step ", committed)
                                         : "without a new checkpoint",
      checkpoints_.idle() ? "" : ", or with a later checkpoint that is being written");
}

void Coordinator::Stop(absl::Time now) {
  if (phase() != WAITING) return timeline_->end.RequestStop();
  Finish(now);
  EndIfEveryoneKnows(now);
}

void Coordinator::OnTick(absl::Time now) {
  ForgiveOwnPause(now);
  for (const uint32_t id : membership_.Silent(now, failure_timeout_)) {
    const Member* const member = membership_.Find(id);
    if (member == nullptr || stage_.ended()) break;
    const double silence = absl::ToDoubleSeconds(now - member->last_heard);
    OnLost(id, absl::StrFormat("no heartbeat for %.1f s", silence), now);
    Advance(now);  // each loss separately, as in the journal
  }
  if (tracing_.IsOverdue(timeline_->progress.step(), now)) {
    Keep(now, [](JournalRecord& record) { record.mutable_trace_over(); });
    tracing_.End();
  }
  SeeWait(now, wait_);
  const auto before = Mark();
  Advance(now);
  if (Mark() != before) Keep(now, [](JournalRecord& record) { record.mutable_passed(); });
}

void Coordinator::ForgiveOwnPause(absl::Time now) {
  const absl::Duration pause = own_pauses_.Pass(now);
  if (pause == absl::ZeroDuration()) return;
  membership_.ForEach([now, pause](Member& member) {
    member.last_heard = std::min(now, member.last_heard + pause);
  });
  stage_.ForgivePause(pause, now);
}

void Coordinator::OnTrouble(const std::string& what, absl::Time now) {
  if (stage_.ended()) return;
  Keep(now, [&](JournalRecord& record) { record.set_trouble(what); });
  Fail(what, now);
  Advance(now);
}

void Coordinator::OnGone(uint32_t node_id, uint64_t job, absl::Time now) {
  if (job != options_.job) return;
  OnLost(node_id, "its connection was closed", now);
  Advance(now);
}

}  // namespace tug
