#ifndef TUG_CLI_OFFLOAD_PLAN_H_
#define TUG_CLI_OFFLOAD_PLAN_H_

// What `tug experiment offload` is asked for, and the jobs that come of it: some steps of one
// training, alone on the device and with servers beside it.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cpu_budget.h"
#include "cli/experiment_training.h"
#include "experiment/offload_results.h"
#include "proto/job.pb.h"

namespace tug {

// As it was asked for.
struct OffloadArguments {
  std::string job_file;  // empty: a made-up training
  std::vector<std::string> cases = {"plain", "offload", "overlapped"};
  uint32_t servers = 2;
  uint32_t warm_up = 5;  // steps that are not measured
  uint32_t steps = 20;   // that are
  std::string out;       // folder; empty: runs/offload-<n>
  std::vector<std::string> overrides;
  std::string command;  // the whole line
};

struct OffloadPlan {
  ExperimentTraining training;
  std::vector<OffloadKind> cases;
  JobConfig config;                   // of any of them
  std::vector<std::string> schedule;  // ScheduleOverrides
};

// `host`: what the processes may use. Errors: INVALID_ARGUMENT, naming the option, also for a --set
// of what the report says is otherwise; those of the job file.
absl::StatusOr<OffloadPlan> PlanOffload(const OffloadArguments& arguments, const CpuBudget& host);

// --set values of a case, those of the user last. `text_path`: of the made-up text.
std::vector<std::string> JobOverrides(const OffloadArguments& arguments, const OffloadPlan& plan,
                                      OffloadKind kind, const std::string& text_path);

}  // namespace tug

#endif  // TUG_CLI_OFFLOAD_PLAN_H_
