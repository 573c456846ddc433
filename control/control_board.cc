// SPDX-License-Identifier: Apache-2.0
#include "control/control_board.h"

#include <algorithm>
#include <utility>

#include "proto/wire.h"

namespace tug {
namespace {

// Limit of step reports per heartbeat: keeps the message small after a worker was disconnected.
constexpr size_t kMaxReportsPerHeartbeat = 4096;

}  // namespace

ControlBoard::Orders ControlBoard::OrdersOf(const HeartbeatReply& reply,
                                            const ExchangeSchedule& known) {
  Orders orders = {.go = reply.go(),
                   .pause = reply.pause(),
                   .final_version = reply.final_version(),
                   .final_clocks = {reply.final_clocks().begin(), reply.final_clocks().end()},
                   .schedule = known};
  if (const Schedule& newer = reply.schedule(); newer.number() > known.number) {
    orders.schedule = {.number = newer.number(),
                       .partition_bytes = std::min(newer.partition_bytes(), kMaxPayloadBytes / 2),
                       .credit_bytes = newer.credit_bytes()};
  }
  return orders;
}

void ControlBoard::SetOrders(const Orders& orders) {
  absl::MutexLock lock(&mutex_);
  const uint32_t view = orders_.view;
  orders_ = orders;
  orders_.view = view;
}

void ControlBoard::SetPlace(uint32_t view, WorkerPlace place) {
  absl::MutexLock lock(&mutex_);
  orders_.view = view;
  place_ = std::move(place);
}

void ControlBoard::AddTo(HeartbeatRequest& beat) const {
  absl::MutexLock lock(&mutex_);
  const size_t steps = std::min(steps_.size(), kMaxReportsPerHeartbeat);
  for (size_t i = 0; i < steps; ++i) *beat.add_steps() = steps_[i];
  for (const EvalReport& report : evals_) *beat.add_evals() = report;
  beat.set_started(state_.started);
  beat.set_clock(state_.clock);
  beat.set_schedule(state_.schedule);
  const bool placed = state_.view == orders_.view;
  const bool whole = steps == steps_.size();
  beat.set_pausing(state_.pausing && placed && whole);
  beat.set_finished(state_.finished && placed && whole);
}

void ControlBoard::ConfirmReports(int steps, int evals) {
  absl::MutexLock lock(&mutex_);
  steps_.erase(steps_.begin(), steps_.begin() + steps);
  evals_.erase(evals_.begin(), evals_.begin() + evals);
}

void ControlBoard::OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) {
  ConfirmReports(sent.steps_size(), sent.evals_size());
  SetOrders(OrdersOf(reply, orders().schedule));
}

void ControlBoard::Cancel(absl::Status reason) {
  absl::MutexLock lock(&mutex_);
  if (cancelled_.ok()) cancelled_ = std::move(reason);
}

WorkerPlace ControlBoard::place() const {
  absl::MutexLock lock(&mutex_);
  return place_;
}

ControlBoard::Orders ControlBoard::orders() const {
  absl::MutexLock lock(&mutex_);
  return orders_;
}

bool ControlBoard::RefreshOrders(Orders& known) const {
  absl::MutexLock lock(&mutex_);
  if (known == orders_) return false;
  known = orders_;
  return true;
}

absl::Status ControlBoard::WaitForOrdersOtherThan(const Orders& known) {
  absl::MutexLock lock(&mutex_);
  const auto changed = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !cancelled_.ok() || orders_ != known;
  };
  mutex_.Await(absl::Condition(&changed));
  return cancelled_;
}

void ControlBoard::SetState(const State& state) {
  absl::MutexLock lock(&mutex_);
  state_ = state;
}

ControlBoard::State ControlBoard::state() const {
  absl::MutexLock lock(&mutex_);
  return state_;
}

void ControlBoard::AddStep(StepReport report) {
  absl::MutexLock lock(&mutex_);
  steps_.push_back(std::move(report));
}

void ControlBoard::AddEval(EvalReport report) {
  absl::MutexLock lock(&mutex_);
  evals_.push_back(std::move(report));
}

absl::Status ControlBoard::Sleep(absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  const auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !cancelled_.ok(); };
  mutex_.AwaitWithTimeout(absl::Condition(&ended), duration);
  return cancelled_;
}

absl::Status ControlBoard::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

}  // namespace tug
