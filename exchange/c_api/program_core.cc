// SPDX-License-Identifier: Apache-2.0
#include "exchange/c_api/program_core.h"

#include <utility>

#include "config/sync_mode.h"

namespace tug {

ProgramCore::ProgramCore(const JobConfig& config, ControlBoard& board)
    : steps_(config.train().steps()),
      pulls_newest_(SyncModeOf(config.sync().policy()).pulls_newest()),
      board_(board) {}

void ProgramCore::SetPlace(const WorkerPlace& place) {
  if (!place.virtual_workers.empty()) carried_ = place.virtual_workers;
  gate_ = GateOf(orders_, carried_);
}

void ProgramCore::OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) {
  board_.OnReply(reply, sent);
  orders_ = board_.orders();
  gate_ = GateOf(orders_, carried_);
  state_.pausing = orders_.pause;
  board_.SetState(state_);
}

ProgramCore::Verdict ProgramCore::MayBegin(uint64_t clock) const {
  if (!orders_.go) return Verdict::kWait;
  if (gate_.IsPastEnd(0, clock)) return Verdict::kDone;
  return gate_.MayBegin(clock, steps_) ? Verdict::kBegin : Verdict::kWait;
}

ProgramCore::Verdict ProgramCore::TryBegin(uint64_t clock) {
  const Verdict verdict = MayBegin(clock);
  done_ = verdict == Verdict::kDone;
  if (verdict != Verdict::kBegin) return verdict;
  schedule_ = orders_.schedule;
  state_.started = true;
  state_.clock = clock;
  state_.schedule = schedule_.number;
  board_.SetState(state_);
  return verdict;
}

PushRequest ProgramCore::PushAt(uint32_t block, uint64_t clock) const {
  return {.block = block, .virtual_worker = carried_[0], .virtual_worker_count = 1, .clock = clock};
}

// The last pull requests the weights that the pushes of all workers have made.
PullRequest ProgramCore::PullAt(uint32_t block, uint64_t clock) const {
  return {.block = block,
          .want = pulls_newest_ && !pulls_once_more() ? Want::kAtLeast : Want::kExact,
          .clock = pulls_once_more() ? gate_.last_clock : clock,
          .virtual_workers = {carried_[0], 1}};
}

void ProgramCore::Finish() {
  state_.finished = true;
  board_.SetState(state_);
}

}  // namespace tug
