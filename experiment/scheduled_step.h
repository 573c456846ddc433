#ifndef TUG_EXPERIMENT_SCHEDULED_STEP_H_
#define TUG_EXPERIMENT_SCHEDULED_STEP_H_

// What stands beside the measured steps of a replay whose order of sending is in question: what
// they could be, what the simulator says of them, and what its tuner settled on. Pure, thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/run_figures.h"
#include "experiment/timeline.h"
#include "proto/experiment.pb.h"
#include "proto/job.pb.h"

namespace tug {

struct WorkedOutStep {
  double seconds = 0;
  Timeline timeline;
};

struct ScheduledStep {
  // Of comm.scheduler AUTO, if all measured steps were under it.
  std::optional<SettledSchedule> settled;
  // No schedule is faster. This and the prediction are of hosts of deploy/testbed, one for each
  // node, that nothing but their links slows down: else there is neither.
  std::optional<WorkedOutStep> bound;
  // Not of an AUTO that had not settled: its steps were of several schedules.
  std::optional<double> predicted_seconds;
  Timeline timeline;  // of a traced step of a worker; may be empty
};

// Without the timeline. `config`: of a run, as resolved; `warm_up_steps`: before the measured ones.
// What simulate/scheduling.h cannot work out (a job that is no replay, not BSP) is left out.
ScheduledStep ScheduledStepOf(const RunFigures& figures, const JobConfig& config,
                              const Place& place, uint64_t warm_up_steps);

// How long a step's bytes, FP32 payload of full frames, take over the busiest link one way, beside
// its computing.
struct LinkLoad {
  double model_bytes = 0;
  double compute_seconds = 0;  // forward and backward
  // None: there is no link, and comm.impair no rate; or servers are beside workers.
  std::optional<double> transfer_seconds;
};
// `config`: a replay, as resolved. A link is that of a testbed, or as comm.impair has it.
LinkLoad LinkLoadOf(const JobConfig& config, const Place& place);

// In forward order, of a replay as resolved.
std::vector<std::string> BlockNamesOf(const JobConfig& config);

}  // namespace tug

#endif  // TUG_EXPERIMENT_SCHEDULED_STEP_H_
