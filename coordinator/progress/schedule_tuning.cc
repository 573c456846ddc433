// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/schedule_tuning.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/byte_size.h"

namespace tug {
namespace {

Tuner::Options TunerOptions(const CommConfig& comm, const SegmentTable& table) {
  return {.points = SchedulePoints(table),
          .own = OwnPoint(comm),
          .trials = comm.tuner().trials(),
          .steps_per_trial = comm.tuner().steps_per_trial(),
          .drift = comm.tuner().drift()};
}

std::string PointText(const SchedulePoint& point) {
  return absl::StrCat("partition ", ByteSizeText(point.partition_bytes), ", credit ",
                      ByteSizeText(point.credit_bytes));
}

}  // namespace

ScheduleTuning::ScheduleTuning(const JobConfig& config, const SegmentTable& table, bool predictions)
    : comm_(config.comm()),
      predictions_(predictions),
      tuner_(TunerOptions(config.comm(), table)),
      point_(OwnPoint(comm_)) {}

void ScheduleTuning::AddStep(const StepMetrics& step) {
  if (step.schedule != number()) return;
  if (unmeasured_ > 0) {
    --unmeasured_;
    return;
  }
  const double seconds = step.mean_seconds;  // workers alternate at being the slowest
  if (awaiting_ || !std::isfinite(seconds) || seconds <= 0) return;
  Report(tuner_.Observe(seconds), step.step);
  if (!awaiting_) Follow();
}

void ScheduleTuning::Report(Tuner::Event event, uint64_t step) {
  if (event == Tuner::Event::kNone) return;
  if (event == Tuner::Event::kDrift) {
    ++round_;
    events_.push_back(DriftMetrics{step, tuner_.settled_median(), tuner_.newest_median()});
    return;
  }
  const Tuner::Trial& trial = tuner_.trial();
  events_.push_back(TrialMetrics{step, trial, comm_.tuner().trials()});
  if (event == Tuner::Event::kSettled) {
    events_.push_back(SettledMetrics{step, tuner_.settled(), round_ > 1});
  } else if (predictions_ && trial.number == 1) {
    awaiting_ = true;
    events_.push_back(StepPredictionWanted{round_, trial.point, trial.seconds, tuner_.points()});
  }
}

void ScheduleTuning::SetPrediction(uint32_t round, std::vector<double> seconds) {
  if (!awaiting_ || round != round_) return;
  awaiting_ = false;
  if (seconds.size() == tuner_.points().size()) tuner_.SetPrediction(std::move(seconds));
  Follow();
}

void ScheduleTuning::Follow() {
  if (tuner_.Suggest() == point_) return;
  point_ = tuner_.Suggest();
  Schedule next;
  next.set_number(number() + 1);
  next.set_partition_bytes(point_.partition_bytes);
  next.set_credit_bytes(point_.credit_bytes);
  next.set_pull_credit_bytes(PullCreditBytes(point_, comm_));
  wanted_ = std::move(next);
  unmeasured_ = kUnmeasured;
}

void ScheduleTuning::AddTo(NodeKind kind, HeartbeatReply& reply) const {
  const std::optional<Schedule>& schedule = kind == SERVER ? wanted_ : given_;
  if (schedule.has_value()) *reply.mutable_schedule() = *schedule;
}

void ScheduleTuning::ServersHave(uint32_t number) {
  if (wanted_.has_value() && number >= wanted_->number()) given_ = wanted_;
}

// ---- text ----

std::string TuningText(const TrialMetrics& metrics) {
  const Tuner::Trial& trial = metrics.trial;
  std::string text = absl::StrFormat("trial %d of %d: %s: %.1f ms per step", trial.number,
                                     metrics.trials, PointText(trial.point), trial.seconds * 1e3);
  if (trial.predicted > 0) absl::StrAppendFormat(&text, " (expected %.1f)", trial.predicted * 1e3);
  return text;
}

std::string TuningText(const SettledMetrics& metrics) {
  const Tuner::Settled& settled = metrics.settled;
  const double faster = settled.first_seconds / settled.seconds - 1;
  const std::string first = metrics.again ? "at the start of this tuning" : "the job's settings";
  return absl::StrFormat("settled on %s: %.1f ms per step, %s; %d trials", PointText(settled.point),
                         settled.seconds * 1e3,
                         faster < 0.005
                             ? "no slower than " + first
                             : absl::StrFormat("%.0f%% faster than %s", 100 * faster, first),
                         settled.trials);
}

std::string TuningText(const DriftMetrics& metrics) {
  return absl::StrFormat("step time changed from %.1f ms to %.1f ms: tuning again",
                         metrics.settled_seconds * 1e3, metrics.newest_seconds * 1e3);
}

}  // namespace tug
