#ifndef TUG_SIMULATE_STEP_PREDICTION_H_
#define TUG_SIMULATE_STEP_PREDICTION_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "scheduler/schedule_points.h"
#include "simulate/scheduling.h"

namespace tug {

// What a step of a job was seen to take under a schedule.
struct MeasuredStep {
  SchedulePoint point;
  double seconds = 0;
};

// What machines are taken for of which only a step time is known: a message costs what it does on a
// usual machine, sums cost nothing beside the network. The link is found from the measured step.
// Streams share it evenly: then one worker is simulated for all that are alike.
inline constexpr SimulatedHosts kUsualHosts = {.link_bytes_per_second = 0,
                                               .latency_seconds = 1e-4,
                                               .queue_seconds = 0.02,
                                               .unevenness = 1,
                                               .message_seconds = 2e-5,
                                               .server_bytes_per_second = 0};

// Step times of `job` (as PredictScheduling takes it) at `points`, in seconds: by simulation, on
// the slowest link on which the measured step takes no longer than it did. What a schedule does to
// the step time is right in shape where constants are not; heights follow from live steps
// (scheduler/tuner.h). Points with so many partitions that they would take long to simulate have
// the time of the point with partitions twice as large, or that of their messages, if longer.
//
// Deterministic. Errors: those of PredictScheduling; CANCELLED once `stopped` says so.
absl::StatusOr<std::vector<double>> PredictSteps(const JobConfig& job, const MeasuredStep& measured,
                                                 const std::vector<SchedulePoint>& points,
                                                 const std::function<bool()>& stopped);

// `job` under another schedule; the pull credit is as the job says where the schedule is its own,
// and follows the credit elsewhere, as with a live job.
JobConfig WithSchedule(const JobConfig& job, const SchedulePoint& point);

}  // namespace tug

#endif  // TUG_SIMULATE_STEP_PREDICTION_H_
