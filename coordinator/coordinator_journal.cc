// SPDX-License-Identifier: Apache-2.0
// Selects the inputs of the coordinator that are new, and replays them in another process.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/coordinator.h"
#include "coordinator/membership/shown_text.h"

namespace tug {
namespace {

template <typename Repeated, typename Keep>
void KeepOnly(Repeated& all, Keep keep) {
  all.erase(std::remove_if(all.begin(), all.end(), [&](const auto& one) { return !keep(one); }),
            all.end());
}

absl::Status Senseless(const std::string& what) {
  return absl::DataLossError(absl::StrCat("the journal is inconsistent: ", what));
}

}  // namespace

std::optional<HeartbeatRequest> Coordinator::PartsAfterFailure(
    const Member& member, const HeartbeatRequest& request) const {
  if (phase() != FAILED || stage_.end_reported() || stage_.rolling_back() ||
      timeline_->finite_loss.exceeded() || !views_.IsOfTimeline(request.known_view())) {
    return std::nullopt;
  }
  HeartbeatRequest fresh;
  fresh.set_node_id(request.node_id());
  fresh.set_job(request.job());
  fresh.set_known_view(request.known_view());
  for (const CheckpointPart& part : request.parts()) {
    if (part.error().empty() && checkpoints_.IsWanted(member, part)) *fresh.add_parts() = part;
  }
  if (fresh.parts().empty()) return std::nullopt;
  return fresh;
}

// Only the result is applied and journaled, so a field dropped here changes neither this
// coordinator nor one that recovers the job. Heartbeats repeat a report until it is accepted.
std::optional<HeartbeatRequest> Coordinator::WhatIsNew(const Member& member,
                                                       const HeartbeatRequest& request) const {
  if (stage_.ended()) return PartsAfterFailure(member, request);
  HeartbeatRequest fresh = request;
  ShowTexts(fresh);
  fresh.clear_activity();
  const bool newest = views_.IsNewest(request.known_view());
  if (!newest || member.ready) fresh.clear_ready();
  if (member.trace_sent) fresh.clear_trace_sent();
  fresh.clear_metrics_endpoint();  // repeated in every heartbeat, and no decision depends on it
  if (request.schedule() <= member.schedule) fresh.clear_schedule();
  KeepOnly(*fresh.mutable_notices(),
           [&](const Notice& notice) { return actions_.TakesNotice(notice.key()); });
  if (!leaving_.Wants(member, request)) fresh.clear_leaving();
  views_.KeepNews(member, fresh);
  // As in Absorb: reports of another timeline are void.
  const bool heard = !stage_.rolling_back() && views_.IsOfTimeline(request.known_view());
  const bool may_pause = timeline_->end.pausing() || member.leaving || fresh.leaving();
  if (!heard || !newest || !may_pause || member.pausing) fresh.clear_pausing();
  const bool further = !member.started || request.clock() > member.clock || fresh.pausing();
  if (!heard || !request.started() || !further) {
    fresh.clear_started();
    fresh.clear_clock();
  }
  if (!heard || !newest || member.finished) fresh.clear_finished();
  KeepOnly(*fresh.mutable_steps(), [&](const StepReport& report) {
    return heard && timeline_->CanHaveBegun(report.virtual_worker(), report.clock());
  });
  if (!heard) fresh.clear_evals();
  KeepOnly(*fresh.mutable_parts(), [&](const CheckpointPart& part) {
    // A job that rolls back still accepts the residual parts that its checkpoints miss.
    return views_.IsOfTimeline(request.known_view()) && checkpoints_.IsWanted(member, part);
  });
  // Counters are only displayed. The journal keeps these for the job's summary, which a recovered
  // coordinator may write.
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
      status = OnDrain(record.drain().name(), now).status();
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
      tracing_.End();
      break;
    case JournalRecord::kPassed:
      Advance(now);
      break;
    case JournalRecord::kTakenUp:
      OnTakenUp(now);
      break;
    case JournalRecord::kBegin:
    case JournalRecord::kListening:
      break;  // no input of the state machine
    default:
      status =
          absl::InvalidArgumentError("unknown record type: a different version of tug wrote it");
  }
  replaying_ = false;
  return status.ok() ? status : Senseless(std::string(status.message()));
}

void Coordinator::OnTakenUp(absl::Time now) {
  Keep(now, [](JournalRecord& record) { record.mutable_taken_up(); });
  own_pauses_.Pass(now);  // the process may be stopped before its first tick
  membership_.ForEach([now](Member& member) {
    member.last_heard = now;
    member.told_of_end = false;
  });
  stage_.CountFrom(now);
  ++taken_up_;
  const uint64_t step = timeline_->progress.step();
  actions_.AddNotice(
      absl::StrCat("taken up ", taken_up_),
      absl::StrCat("the coordinator was lost; another one recovered the job at step ", step));
  if (tracing_.IsWanted(step)) {
    tracing_.GiveUp();
    actions_.AddNotice("trace lost",
                       "the trace is lost: the previous coordinator was collecting it");
  }
  Advance(now);
}

}  // namespace tug
