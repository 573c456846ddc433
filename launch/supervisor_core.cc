// SPDX-License-Identifier: Apache-2.0
#include "launch/supervisor_core.h"

#include <algorithm>
#include <utility>

namespace tug {
namespace {

// Whether the process ended by itself and the coordinator may report the cause.
bool Failed(ProcessExit how) { return how == ProcessExit::kError || how == ProcessExit::kUnknown; }

}  // namespace

void SupervisorCore::AddNode(const std::string& name, bool is_server, bool spare, absl::Time now) {
  nodes_.push_back({.name = name, .is_server = is_server, .spare = spare, .start_at = now});
  StartDueNodes(now);
}

void SupervisorCore::Begin(absl::Time now) { Start(coordinator_, now); }

void SupervisorCore::Start(Process& process, absl::Time now) {
  const bool again = process.started_at != absl::InfinitePast();
  process.spare |= again && process.is_server;
  process.running = true;
  process.started_at = now;
  process.start_at = absl::InfiniteFuture();
  actions_.emplace_back(StartProcess{process.name, process.spare, again});
}

void SupervisorCore::OnReady(absl::Time now) {
  if (phase_ != Phase::kBeginning && phase_ != Phase::kRecovering) return;
  phase_ = Phase::kRunning;
  if (interrupted()) actions_.emplace_back(StopCoordinator{});
  StartDueNodes(now);
}

void SupervisorCore::OnNotReady(absl::Time now) {
  EndAt(now + options_.exit_time, {EndJob::Why::kNoAddress});
}

void SupervisorCore::OnExit(const std::string& name, ProcessExit how, absl::Time now) {
  if (phase_ == Phase::kOver) return;
  if (name == coordinator_.name) return OnCoordinatorExit(how, now);
  Process& node = *std::ranges::find(nodes_, name, &Process::name);
  node.running = false;
  if (phase_ == Phase::kClosing) {
    if (how != ProcessExit::kZero && end_.why == EndJob::Why::kDone) {
      actions_.emplace_back(WarnOfExit{name});
    }
    return EndIfNodesExited();
  }
  if (how == ProcessExit::kZero) return;
  CountExit(node, how, now);
  const bool crash_loop = node.quick_deaths >= kMaxQuickDeaths;
  node.start_at = now + (crash_loop    ? options_.end_time
                         : Failed(how) ? options_.report_time
                                       : absl::ZeroDuration());
  StartDueNodes(now);
}

void SupervisorCore::CountExit(Process& process, ProcessExit how, absl::Time now) const {
  const absl::Duration quick =
      options_.quick_death + (Failed(how) ? options_.join_time : absl::ZeroDuration());
  process.quick_deaths = now - process.started_at < quick ? process.quick_deaths + 1 : 0;
}

void SupervisorCore::StartDueNodes(absl::Time now) {
  for (Process& node : nodes_) {
    if (phase_ != Phase::kRunning) return;
    if (node.start_at > now) continue;
    if (node.quick_deaths >= kMaxQuickDeaths) return End({EndJob::Why::kProcessLost, node.name});
    Start(node, now);
  }
}

void SupervisorCore::OnCoordinatorExit(ProcessExit how, absl::Time now) {
  end_at_ = absl::InfiniteFuture();
  const EndJob lost{EndJob::Why::kProcessLost, coordinator_.name};
  switch (how) {
    case ProcessExit::kZero:
      phase_ = Phase::kClosing;
      EndAt(now + options_.exit_time, {EndJob::Why::kDone});
      return EndIfNodesExited();
    case ProcessExit::kConnectionLost:
      phase_ = Phase::kClosing;
      EndAt(now + options_.end_time, lost);
      return EndIfNodesExited();
    case ProcessExit::kError:
      return End({EndJob::Why::kCoordinatorFailed});
    case ProcessExit::kUnknown:
      return End(lost);
    case ProcessExit::kKilled:
      CountExit(coordinator_, how, now);
      if (phase_ == Phase::kBeginning || coordinator_.quick_deaths >= kMaxQuickDeaths) {
        return End(lost);
      }
      phase_ = Phase::kRecovering;
      return Start(coordinator_, now);
  }
}

void SupervisorCore::OnInterrupt(absl::Time now) {
  if (!interrupts_.Add(now) || phase_ == Phase::kOver) return;
  if (phase_ == Phase::kClosing && end_.why == EndJob::Why::kDone) return End(end_);
  if (phase_ == Phase::kBeginning) return End({EndJob::Why::kCancelled});
  if (interrupts_.count() > 1) return End({EndJob::Why::kInterruptedTwice});
  if (phase_ == Phase::kRunning) actions_.emplace_back(StopCoordinator{});
}

void SupervisorCore::OnTick(absl::Time now) {
  if (now >= end_at_) return End(end_);
  StartDueNodes(now);
}

absl::Time SupervisorCore::NextDeadline() const {
  absl::Time next = end_at_;
  if (phase_ == Phase::kRunning) {
    for (const Process& node : nodes_) next = std::min(next, node.start_at);
  }
  return next;
}

void SupervisorCore::EndAt(absl::Time at, EndJob end) {
  end_at_ = at;
  end_ = std::move(end);
}

void SupervisorCore::EndIfNodesExited() {
  if (std::ranges::none_of(nodes_, &Process::running)) End(end_);
}

void SupervisorCore::End(EndJob end) {
  phase_ = Phase::kOver;
  end_at_ = absl::InfiniteFuture();
  actions_.emplace_back(std::move(end));
}

std::vector<SupervisorAction> SupervisorCore::TakeActions() { return std::exchange(actions_, {}); }

}  // namespace tug
