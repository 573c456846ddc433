// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PREDICTION_STEP_PREDICTION_H_
#define TUG_PREDICTION_STEP_PREDICTION_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "prediction/scheduling.h"
#include "proto/job.pb.h"
#include "scheduler/schedule_points.h"

namespace tug {

// Measured time of a step under a schedule.
struct MeasuredStep {
  SchedulePoint point;
  double seconds = 0;
};

// Machines assumed if only a step time is known: a message costs what it does on a usual machine,
// sums cost nothing compared with the network. The link is fitted to the measured step. Streams
// share it evenly, so that one worker is simulated for all that are alike.
inline constexpr SimulatedHosts kUsualHosts = {.link_bytes_per_second = 0,
                                               .latency_seconds = 1e-4,
                                               .queue_seconds = 0.02,
                                               .unevenness = 1,
                                               .message_seconds = 2e-5,
                                               .server_bytes_per_second = 0};

// Step times of `job` (as for PredictScheduling) at `points`, in seconds: by simulation, on the
// slowest link on which the measured step takes no longer than measured. The shape of the effect of
// a schedule is right even where constants are not; live steps give the heights
// (scheduler/tuner.h). Points with too many partitions to simulate quickly get the time of the
// point with partitions twice as large, or that of their messages, if longer.
//
// Deterministic. Errors: those of PredictScheduling; CANCELLED once `stopped` returns true.
absl::StatusOr<std::vector<double>> PredictSteps(const JobConfig& job, const MeasuredStep& measured,
                                                 const std::vector<SchedulePoint>& points,
                                                 const std::function<bool()>& stopped);

// `job` under another schedule. The pull credit is the job's own if the schedule is, and follows
// the credit otherwise, as in a live job.
JobConfig WithSchedule(const JobConfig& job, const SchedulePoint& point);

}  // namespace tug

#endif  // TUG_PREDICTION_STEP_PREDICTION_H_
