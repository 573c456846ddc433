// What of the coordinator's inputs is new, and how they are obeyed again by another process.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/coordinator.h"
#include "coordinator/shown_text.h"

namespace tug {
namespace {

template <typename Repeated, typename Keep>
void KeepOnly(Repeated& all, Keep keep) {
  all.erase(std::remove_if(all.begin(), all.end(), [&](const auto& one) { return !keep(one); }),
            all.end());
}

absl::Status Senseless(const std::string& what) {
  return absl::DataLossError(absl::StrCat("the journal makes no sense: ", what));
}

}  // namespace

JournalBegin BeginOf(const CoordinatorOptions& options) {
  JournalBegin begin;
  begin.set_job(options.job);
  begin.set_fingerprint(options.fingerprint);
  *begin.mutable_config() = options.config;
  *begin.mutable_blocks() = options.layout.blocks;
  begin.mutable_segment_bytes()->Assign(options.layout.segment_bytes.begin(),
                                        options.layout.segment_bytes.end());
  begin.set_run_dir(options.run_dir);
  begin.set_timeline(options.start.number);
  begin.set_start_version(options.start.version);
  begin.set_restore_path(options.start.restore_path);
  begin.mutable_start_clocks()->Assign(options.start.clocks.begin(), options.start.clocks.end());
  begin.mutable_start_residuals()->Assign(options.start.residuals.begin(),
                                          options.start.residuals.end());
  for (const EvalMetrics& eval : options.past_evals) {
    PastEvaluation* past = begin.add_past_evals();
    past->set_version(eval.version);
    past->set_loss(eval.loss);
    past->set_accuracy(eval.accuracy);
    past->set_targets(eval.targets);
    past->set_final(eval.final);
  }
  if (options.best.has_value()) {
    begin.mutable_best()->set_version(options.best->version);
    begin.mutable_best()->set_loss(options.best->loss);
  }
  begin.set_predicts_steps(options.predicts_steps);
  begin.set_data_notice(options.data_notice);
  return begin;
}

CoordinatorOptions OptionsOf(const JournalBegin& begin) {
  CoordinatorOptions options;
  options.config = begin.config();
  options.fingerprint = begin.fingerprint();
  options.layout = {begin.blocks(), {begin.segment_bytes().begin(), begin.segment_bytes().end()}};
  options.job = begin.job();
  options.run_dir = begin.run_dir();
  options.start = {.number = begin.timeline(),
                   .version = begin.start_version(),
                   .restore_path = begin.restore_path(),
                   .clocks = {begin.start_clocks().begin(), begin.start_clocks().end()},
                   .residuals = {begin.start_residuals().begin(), begin.start_residuals().end()}};
  for (const PastEvaluation& past : begin.past_evals()) {
    options.past_evals.push_back({.version = past.version(),
                                  .loss = past.loss(),
                                  .accuracy = past.accuracy(),
                                  .targets = past.targets(),
                                  .final = past.final()});
  }
  if (begin.has_best()) options.best = {begin.best().version(), begin.best().loss()};
  options.predicts_steps = begin.predicts_steps();
  options.data_notice = begin.data_notice();
  return options;
}

std::optional<HeartbeatRequest> Coordinator::PartsAfterFailure(
    const Member& member, const HeartbeatRequest& request) const {
  if (!CommitsAfterFailure() || request.known_view() < timeline_view_) return std::nullopt;
  HeartbeatRequest fresh;
  fresh.set_node_id(request.node_id());
  fresh.set_job(request.job());
  fresh.set_known_view(request.known_view());
  for (const CheckpointPart& part : request.parts()) {
    if (part.error().empty() && IsWanted(member, part)) *fresh.add_parts() = part;
  }
  if (fresh.parts().empty()) return std::nullopt;
  return fresh;
}

// The rest is obeyed too, not only kept: so whatever is left out here changes neither this
// coordinator nor the one that takes its job up. A heartbeat says it again until it is heard.
std::optional<HeartbeatRequest> Coordinator::WhatIsNew(const Member& member,
                                                       const HeartbeatRequest& request) const {
  if (Ended()) return PartsAfterFailure(member, request);
  HeartbeatRequest fresh = request;
  ShowTexts(fresh);
  fresh.clear_activity();
  const bool newest = view_.has_value() && request.known_view() == view_->number();
  if (!newest || member.ready) fresh.clear_ready();
  if (member.trace_sent) fresh.clear_trace_sent();
  fresh.clear_metrics_endpoint();  // said again with every heartbeat, and nothing depends on it
  if (request.schedule() <= member.schedule) fresh.clear_schedule();
  KeepOnly(*fresh.mutable_notices(), [&](const Notice& notice) {
    return notice_keys_.size() < kMaxNotices && !notice_keys_.contains(notice.key());
  });
  const bool refused = request.leaving() && !MayLeave(member).ok() &&
                       (notice_keys_.size() >= kMaxNotices ||
                        notice_keys_.contains(absl::StrCat(kStaysKey, member.id)));
  if (member.leaving || refused) fresh.clear_leaving();
  if (!holders_.has_value() || !holders_->Wants(member.id, request.copied_placement())) {
    fresh.clear_copied_placement();
  }
  if (member.kind != SERVER || !places_.fencing() || request.clocks_of_view() != places_.number()) {
    fresh.clear_clocks();
    fresh.clear_clocks_of_view();
  }
  // As Absorb: what is of another timeline is void.
  const bool heard = view_.has_value() && !rolling_back_ && request.known_view() >= timeline_view_;
  const bool may_pause = timeline_->end.pausing() || member.leaving || fresh.leaving();
  if (!heard || !newest || !may_pause || member.pausing) fresh.clear_pausing();
  const bool further = !member.started || request.clock() > member.clock || fresh.pausing();
  if (!heard || !request.started() || !further) {
    fresh.clear_started();
    fresh.clear_clock();
  }
  if (!heard || !newest || member.finished) fresh.clear_finished();
  KeepOnly(*fresh.mutable_steps(), [&](const StepReport& report) {
    return heard && CanHaveBegun(report.virtual_worker(), report.clock());
  });
  if (!heard) fresh.clear_evals();
  KeepOnly(*fresh.mutable_parts(), [&](const CheckpointPart& part) {
    // A job that goes back still takes what its checkpoints lack of workers (IsWanted).
    if (!view_.has_value() || request.known_view() < timeline_view_) return false;
    return part.error().empty() ? IsWanted(member, part) : heard && Matters(member, part);
  });
  // They are for people: what is kept is for the job's summary, should it be made by another
  // coordinator.
  if (!fresh.ready() && !fresh.finished() && fresh.parts().empty()) fresh.clear_counters();

  HeartbeatRequest rest = fresh;
  rest.clear_node_id();
  rest.clear_job();
  rest.clear_known_view();
  rest.clear_counters();
  const bool said = request.known_view() > member.known_view || rest.ByteSizeLong() > 0;
  if (!said && !membership_.IsUnheard(member.id)) return std::nullopt;
  return fresh;
}

absl::Status Coordinator::Replay(const JournalRecord& record) {
  const absl::Time now = absl::FromUnixNanos(record.time_ns());
  replaying_ = true;
  absl::Status status;
  switch (record.input_case()) {
    case JournalRecord::kRegistered:
      status = OnRegister(record.registered(), now).status();
      break;
    case JournalRecord::kHeartbeat:
      status = OnHeartbeat(record.heartbeat(), now).status();
      break;
    case JournalRecord::kLost:
      OnLost(record.lost().node_id(), record.lost().how(), now);
      Advance(now);
      break;
    case JournalRecord::kStop:
      OnStop(now);
      break;
    case JournalRecord::kDrain:
      status = OnDrain(record.drain().node_id(), now).status();
      break;
    case JournalRecord::kCommitted:
      OnCheckpointCommitted(record.committed().version(),
                            absl::Status(static_cast<absl::StatusCode>(record.committed().code()),
                                         record.committed().error()),
                            now);
      break;
    case JournalRecord::kPredicted:
      OnStepsPredicted(record.predicted().round(),
                       {record.predicted().seconds().begin(), record.predicted().seconds().end()});
      break;
    case JournalRecord::kTrouble:
      OnTrouble(record.trouble(), now);
      break;
    case JournalRecord::kTraceOver:
      EndTrace();
      break;
    case JournalRecord::kPassed:
      Advance(now);
      break;
    case JournalRecord::kTakenUp:
      OnTakenUp(now);
      break;
    case JournalRecord::kBegin:
    case JournalRecord::kListening:
      break;  // not of the job's course
    default:
      status = absl::InvalidArgumentError("a record of another version of tug");
  }
  replaying_ = false;
  return status.ok() ? status : Senseless(std::string(status.message()));
}

void Coordinator::OnTakenUp(absl::Time now) {
  Keep(now, [](JournalRecord& record) { record.mutable_taken_up(); });
  own_pauses_.Pass(now);  // it may be stopped before its first tick
  for (const auto& [id, unused] : membership_.members()) {
    Member& member = *membership_.Find(id);
    member.last_heard = now;
    member.told_of_end = false;
  }
  if (Ended()) ended_at_ = now;
  if (rolling_back_) rolling_back_since_ = now;
  ++taken_up_;
  AddNotice(absl::StrCat("taken up ", taken_up_),
            absl::StrCat("the coordinator was lost; another one has taken the job up after step ",
                         timeline_->progress.step()));
  if (!trace_done_ && TraceWanted()) {
    trace_done_ = true;
    traces_.Take();
    AddNotice("trace lost", "the trace is lost: it was being gathered by the coordinator before");
  }
  Advance(now);
}

}  // namespace tug
