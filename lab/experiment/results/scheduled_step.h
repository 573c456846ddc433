// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RESULTS_SCHEDULED_STEP_H_
#define TUG_LAB_EXPERIMENT_RESULTS_SCHEDULED_STEP_H_

// References for the measured steps of a replay whose order of sending is in question: the lower
// bound, the simulator's prediction, and the schedule that its tuner settled on. Pure, thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/experiment/measures/run_figures.h"
#include "lab/experiment/results/timeline.h"
#include "proto/experiment.pb.h"
#include "proto/job.pb.h"

namespace tug {

struct WorkedOutStep {
  double seconds = 0;
  Timeline timeline;
};

struct ScheduledStep {
  // Schedule of comm.scheduler AUTO, if all measured steps ran under it.
  std::optional<SettledSchedule> settled;
  // No schedule is faster. Bound and prediction apply to hosts of deploy/testbed, one per node,
  // that are slowed down only by their links; otherwise both are missing.
  std::optional<WorkedOutStep> bound;
  // None for an AUTO that had not settled: its steps ran under several schedules.
  std::optional<double> predicted_seconds;
  Timeline timeline;  // of a traced step of a worker; may be empty
};

// Everything except the timeline. `config`: of a run, resolved; `warm_up_steps`: steps before the
// measured ones. Leaves out what prediction/scheduling.h does not support (a job that is not
// a replay, or not BSP).
ScheduledStep ScheduledStepOf(const RunFigures& figures, const JobConfig& config,
                              const Place& place, uint64_t warm_up_steps);

// Time of a step's bytes, as FP32 payload of full frames, over the busiest link in one direction;
// and the compute time to compare it with.
struct LinkLoad {
  double model_bytes = 0;
  double compute_seconds = 0;  // forward and backward
  // None: no link, and no rate in comm.impair; or servers run next to workers.
  std::optional<double> transfer_seconds;
};
// `config`: a replay, resolved. The link is that of a testbed, or the rate of comm.impair.
LinkLoad LinkLoadOf(const JobConfig& config, const Place& place);

// Block names of a resolved replay, in forward order.
std::vector<std::string> BlockNamesOf(const JobConfig& config);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RESULTS_SCHEDULED_STEP_H_
