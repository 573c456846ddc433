// SPDX-License-Identifier: Apache-2.0
#include "worker/core/step_times.h"

namespace tug {

void StepTimes::Begin() { BeginAt(exchange_.OpenTime()); }

void StepTimes::BeginAt(const ExchangeClient::OpenTimeReading& begin) {
  begin_ = begin;
  begin_ns_ = trace_ == nullptr ? 0 : trace_->NowNs();
  waiting_ = absl::ZeroDuration();
  computing_ = absl::ZeroDuration();
  straggling_ = absl::ZeroDuration();
}

StepReport StepTimes::End(uint64_t clock) {
  const ExchangeClient::OpenTimeReading end = exchange_.OpenTime();
  const ExchangeCounters traffic = exchange_.counters();
  StepReport report;
  report.set_clock(clock);
  report.set_step_seconds(absl::ToDoubleSeconds(end.at - begin_.at));
  report.set_wait_seconds(absl::ToDoubleSeconds(waiting_));
  report.set_compute_seconds(absl::ToDoubleSeconds(computing_));
  report.set_straggle_seconds(absl::ToDoubleSeconds(straggling_));
  report.set_communication_seconds(absl::ToDoubleSeconds(end.open - begin_.open));
  report.set_pushed_bytes(traffic.pushed_bytes - traffic_.pushed_bytes);
  report.set_pulled_bytes(traffic.pulled_bytes - traffic_.pulled_bytes);
  if (trace_ != nullptr) {
    trace_->Add({.kind = TraceKind::kStep,
                 .clock = clock,
                 .begin_ns = begin_ns_,
                 .end_ns = trace_->NowNs()});
  }
  BeginAt(end);
  traffic_ = traffic;
  return report;
}

}  // namespace tug
