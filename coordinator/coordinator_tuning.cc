// Schedules that a job is tried under (comm.scheduler AUTO).
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "coordinator/coordinator.h"

namespace tug {

void Coordinator::Tune(const std::vector<StepMetrics>& steps) {
  if (!tuning_.has_value()) return;
  uint32_t servers_have = std::numeric_limits<uint32_t>::max();
  for (const Member* server : membership_.OfKind(SERVER)) {
    if (!IsInView(*server)) continue;  // it stands by
    servers_have = std::min(servers_have, server->schedule);
  }
  tuning_->ServersHave(servers_have);
  for (const StepMetrics& step : steps) tuning_->AddStep(step);
  for (TuningEvent& event : tuning_->TakeEvents()) {
    actions_.emplace_back(TuningAction{std::move(event)});
  }
}

void Coordinator::OnStepsPredicted(uint32_t round, std::vector<double> seconds) {
  if (!tuning_.has_value()) return;
  Keep(absl::UnixEpoch(), [&](JournalRecord& record) {  // when, does not matter
    record.mutable_predicted()->set_round(round);
    record.mutable_predicted()->mutable_seconds()->Assign(seconds.begin(), seconds.end());
  });
  tuning_->SetPrediction(round, std::move(seconds));
}

// Servers first: see schedule_tuning.h.
void Coordinator::AddSchedule(const Member& member, HeartbeatReply& reply) const {
  if (!tuning_.has_value() || phase_ != RUNNING) return;
  const std::optional<Schedule>& schedule =
      member.kind == SERVER ? tuning_->for_servers() : tuning_->for_workers();
  if (schedule.has_value()) *reply.mutable_schedule() = *schedule;
}

}  // namespace tug
