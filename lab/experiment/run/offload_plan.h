// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RUN_OFFLOAD_PLAN_H_
#define TUG_LAB_EXPERIMENT_RUN_OFFLOAD_PLAN_H_

// Arguments of `tug experiment offload`, and the jobs that result from them: some steps of one
// training, alone on the device and with servers next to it.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cpu/cpu_budget.h"
#include "lab/experiment/run/experiment_training.h"
#include "lab/experiment/sections/offload_results.h"
#include "proto/job.pb.h"

namespace tug {

// Values of the command line.
struct OffloadArguments {
  std::string job_file;  // empty: a made-up training
  std::vector<std::string> cases = {"plain", "offload", "overlapped"};
  uint32_t servers = 2;
  uint32_t warm_up = 5;  // steps that are not measured
  uint32_t steps = 20;   // measured steps
  std::string out;       // folder; empty: runs/offload-<n>
  std::vector<std::string> overrides;
  std::string command;  // the full command line
};

struct OffloadPlan {
  ExperimentTraining training;
  std::vector<OffloadKind> cases;
  JobConfig config;                   // with the settings of the first case
  std::vector<std::string> schedule;  // ScheduleOverrides and compute threads
};

// `host`: resources that the processes may use. Errors: INVALID_ARGUMENT, naming the option, also
// for a --set of a field that the experiment fixes; those of the job file.
absl::StatusOr<OffloadPlan> PlanOffload(const OffloadArguments& arguments, const CpuBudget& host);

// --set values of a case, with those of the user last. `text_path`: of the made-up text.
std::vector<std::string> JobOverrides(const OffloadArguments& arguments, const OffloadPlan& plan,
                                      OffloadKind kind, const std::string& text_path);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RUN_OFFLOAD_PLAN_H_
