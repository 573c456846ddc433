#ifndef TUG_COORDINATOR_SCHEDULE_TUNING_H_
#define TUG_COORDINATOR_SCHEDULE_TUNING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "coordinator/progress.h"
#include "exchange/segment_table.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "scheduler/tuner.h"

namespace tug {

// A point of the tuner's has been tried.
struct TrialMetrics {
  uint64_t step = 0;  // completed when it ended
  Tuner::Trial trial;
  uint32_t trials = 0;  // of how many
};
// Where it settled.
struct SettledMetrics {
  uint64_t step = 0;
  Tuner::Settled settled;
  bool again = false;  // after drift: what it began with was its own choice, not the job's
};
// Steps have become slower or faster since it settled: it starts again.
struct DriftMetrics {
  uint64_t step = 0;
  double settled_seconds = 0;  // medians
  double newest_seconds = 0;
};
// Whoever can is to predict the step time at these points, given what it is at one of them.
struct StepPredictionWanted {
  uint32_t round = 0;  // comes back with the answer
  SchedulePoint measured;
  double measured_seconds = 0;
  std::vector<SchedulePoint> points;
};
using TuningEvent = std::variant<TrialMetrics, SettledMetrics, DriftMetrics, StepPredictionWanted>;

// comm.scheduler AUTO: hands out the schedules that the tuner wants to try, and tells it how long
// steps took under them.
//
// Life of a schedule: it has a number; servers have it first, and only when all have said so do
// workers. So a step that began under its number found every server ready. Two kinds of steps are
// not measured: the first under a number, whose weights were asked for under the one before, and
// those of which workers do not agree on the number.
//
// What counts is a step's mean over the workers, not its slowest worker (progress.h).
//
// Where predictions are to be had, one is asked for after the first trial of a round (from the
// beginning, or from a drift, to settling); nothing is measured until it has come.
class ScheduleTuning {
 public:
  // Steps under a number that are not measured; at the job's beginning, caches are cold too.
  static constexpr uint32_t kUnmeasured = 1;
  static constexpr uint32_t kUnmeasuredAtFirst = 2;

  // `config`: complete. `predictions`: whether somebody answers StepPredictionWanted.
  ScheduleTuning(const JobConfig& config, const SegmentTable& table, bool predictions);

  // Steps, in order. Those of which workers do not agree on the schedule count for nothing; neither
  // do those whose time cannot be (0, not finite): reports come from outside.
  void AddStep(const StepMetrics& step);
  // Answers a StepPredictionWanted: seconds by point; empty: it could not be predicted.
  void SetPrediction(uint32_t round, std::vector<double> seconds);
  // Every server has taken the schedule of this number, or a later one.
  void ServersHave(uint32_t number);

  // The schedule that a node of the kind is to have. Servers first: see above.
  void AddTo(NodeKind kind, HeartbeatReply& reply) const;
  // None: the job's own.
  const std::optional<Schedule>& for_servers() const { return wanted_; }
  const std::optional<Schedule>& for_workers() const { return given_; }

  // What has come of it since the last call.
  std::vector<TuningEvent> TakeEvents() { return std::exchange(events_, {}); }

 private:
  uint32_t number() const { return wanted_.has_value() ? wanted_->number() : 0; }
  void Report(Tuner::Event event, uint64_t step);
  // Hands out what the tuner suggests, if it is not in effect already.
  void Follow();

  const CommConfig comm_;  // the job's own
  const bool predictions_;
  Tuner tuner_;
  SchedulePoint point_;                       // of wanted_
  std::optional<Schedule> wanted_;            // newest
  std::optional<Schedule> given_;             // newest that all servers have
  uint32_t unmeasured_ = kUnmeasuredAtFirst;  // steps to come that do not count
  uint32_t round_ = 1;
  bool awaiting_ = false;  // a prediction
  std::vector<TuningEvent> events_;
};

// For people: "trial 3 of 20: partition 1 MiB, credit 8 MiB: 213.4 ms a step (expected 209.0)";
// "settled on partition 1 MiB, credit 8 MiB: 213.4 ms a step, 12% faster than the job's own; 20
// trials"; "steps take 310.2 ms in place of 213.4 ms: tuning again".
std::string TuningText(const TrialMetrics& metrics);
std::string TuningText(const SettledMetrics& metrics);
std::string TuningText(const DriftMetrics& metrics);

}  // namespace tug

#endif  // TUG_COORDINATOR_SCHEDULE_TUNING_H_
