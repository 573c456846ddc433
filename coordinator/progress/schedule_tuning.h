// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_PROGRESS_SCHEDULE_TUNING_H_
#define TUG_COORDINATOR_PROGRESS_SCHEDULE_TUNING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "blocks/segment_table.h"
#include "coordinator/progress/progress.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "scheduler/tuner.h"

namespace tug {

// The tuner has measured one point.
struct TrialMetrics {
  uint64_t step = 0;  // last completed step
  Tuner::Trial trial;
  uint32_t trials = 0;  // max number of trials
};
// The tuner has settled on a point.
struct SettledMetrics {
  uint64_t step = 0;
  Tuner::Settled settled;
  bool again = false;  // after a drift: first_seconds is of the tuner's own earlier choice
};
// Step times have changed since the tuner settled: it starts again.
struct DriftMetrics {
  uint64_t step = 0;
  double settled_seconds = 0;  // medians
  double newest_seconds = 0;
};
// Requests predicted step times at these points, given a measurement at one of them.
struct StepPredictionWanted {
  uint32_t round = 0;  // echoed in the answer
  SchedulePoint measured;
  double measured_seconds = 0;
  std::vector<SchedulePoint> points;
};
using TuningEvent = std::variant<TrialMetrics, SettledMetrics, DriftMetrics, StepPredictionWanted>;

// comm.scheduler AUTO: distributes the schedules that the tuner wants to try, and reports step
// times under them to it.
//
// A schedule has a number. Servers get it first; workers get it once all servers have adopted it.
// So a step that begins under its number finds all servers ready. Two kinds of steps are not
// measured: the first under a number, whose weights were requested under the previous one, and
// steps for which workers report different numbers.
//
// The tuner gets a step's mean over the workers, not that of the slowest one (step_metrics.h).
//
// If predictions are available, one is requested after the first trial of a round (a round lasts
// from the start, or a drift, until the tuner settles). Nothing is measured until it arrives.
class ScheduleTuning {
 public:
  // Steps per schedule that are not measured; more at the job's start, when caches are cold too.
  static constexpr uint32_t kUnmeasured = 1;
  static constexpr uint32_t kUnmeasuredAtFirst = 2;

  // `config`: complete. `predictions`: whether StepPredictionWanted events are answered.
  ScheduleTuning(const JobConfig& config, const SegmentTable& table, bool predictions);

  // Adds a step, in order. Ignores steps whose workers differ in schedule, and invalid times (0,
  // not finite): reports are unvalidated input.
  void AddStep(const StepMetrics& step);
  // Answers a StepPredictionWanted: seconds by point; empty: no prediction.
  void SetPrediction(uint32_t round, std::vector<double> seconds);
  // All servers have adopted the schedule of this number or a later one.
  void ServersHave(uint32_t number);

  // Adds the current schedule for nodes of this kind; servers get a new one first.
  void AddTo(NodeKind kind, HeartbeatReply& reply) const;
  // None: the job's own.
  const std::optional<Schedule>& for_servers() const { return wanted_; }
  const std::optional<Schedule>& for_workers() const { return given_; }

  // Events since the last call.
  std::vector<TuningEvent> TakeEvents() { return std::exchange(events_, {}); }

 private:
  uint32_t number() const { return wanted_.has_value() ? wanted_->number() : 0; }
  void Report(Tuner::Event event, uint64_t step);
  // Issues the tuner's suggestion, unless it is already in effect.
  void Follow();

  const CommConfig comm_;  // the job's own
  const bool predictions_;
  Tuner tuner_;
  SchedulePoint point_;                       // of wanted_, or the job's own
  std::optional<Schedule> wanted_;            // newest schedule, for servers
  std::optional<Schedule> given_;             // newest that all servers have, for workers
  uint32_t unmeasured_ = kUnmeasuredAtFirst;  // remaining steps to ignore
  uint32_t round_ = 1;
  bool awaiting_ = false;  // a prediction is pending
  std::vector<TuningEvent> events_;
};

// For display: "trial 3 of 20: partition 1 MiB, credit 8 MiB: 213.4 ms per step (expected 209.0)";
// "settled on partition 1 MiB, credit 8 MiB: 213.4 ms per step, 12% faster than the job's settings;
// 20 trials"; "step time changed from 213.4 ms to 310.2 ms: tuning again".
std::string TuningText(const TrialMetrics& metrics);
std::string TuningText(const SettledMetrics& metrics);
std::string TuningText(const DriftMetrics& metrics);

}  // namespace tug

#endif  // TUG_COORDINATOR_PROGRESS_SCHEDULE_TUNING_H_
