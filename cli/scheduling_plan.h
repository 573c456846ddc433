#ifndef TUG_CLI_SCHEDULING_PLAN_H_
#define TUG_CLI_SCHEDULING_PLAN_H_

// What `tug experiment scheduling` is asked for, and the jobs that come of it.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiment/link_plan.h"
#include "experiment/scheduling_results.h"
#include "proto/job.pb.h"

namespace tug {

// As it was asked for.
struct SchedulingArguments {
  std::string job_file;  // what is not set by the experiment; may be empty
  std::vector<std::string> profiles = {"vgg16", "resnet50", "gpt2_124m"};
  std::vector<double> ratios = {0.5, 1, 2};
  std::vector<std::string> policies = {"fifo", "priority", "bytescheduler"};
  uint32_t workers = 4;
  uint32_t servers = 2;
  uint32_t hosts = 0;  // 0: all on this machine as it is
  std::string link = "200mbit";
  double transfer_seconds = 1;
  uint32_t warm_up = 4;
  uint32_t steps = 12;
  std::string out;  // folder; empty: runs/scheduling-<n>
  std::vector<std::string> overrides;
  std::string command;  // the whole line
};

// What the arguments come to.
struct SchedulingPlan {
  double link_bits_per_second = 0;
  JobHosts nodes;
  // Bound and prediction are of hosts of their own for all nodes, behind links.
  bool worked_out = false;
  TunerConfig tuner;                  // of `auto`
  std::vector<SchedulingCase> cases;  // with their policies, not run yet
};

// Errors: INVALID_ARGUMENT, naming the option, also for a --set of what the report says is
// otherwise; those of LoadReplayProfile, and of reading the job file.
absl::StatusOr<SchedulingPlan> PlanScheduling(const SchedulingArguments& arguments);

// The job file with overrides, complete; without one, a replay that the overrides make. Errors:
// those of LoadJobConfig.
absl::StatusOr<JobConfig> LoadExperimentJob(const SchedulingArguments& arguments,
                                            const std::vector<std::string>& overrides);
// The job that is run where none is named; all else the experiment sets.
inline constexpr char kExperimentJobText[] = "name: \"scheduling\"\ncompute: REPLAY\n";

// 1-based; the job ends with the last.
struct MeasuredSteps {
  uint64_t first = 1;
  uint64_t last = 1;
  // `auto` has to have settled by then, for all measured steps to be under what it settled on.
  uint64_t settled_before = 1;
};
// `auto` is given the time to settle before.
MeasuredSteps MeasuredStepsOf(const SchedulingArguments& arguments, const SchedulingPlan& plan,
                              const SchedulingCase& c, const std::string& policy);

// What all the jobs take, if nothing of a step's transfer is hidden.
double LongestSeconds(const SchedulingArguments& arguments, const SchedulingPlan& plan);

// Steps that are traced: the two before the last one. The first of them is drawn, with the forward
// pass of the second; the job ends before the measured steps would wait for their upload.
inline constexpr uint32_t kTracedSteps = 2;

// --set values of the job of a case under a policy, those of the user last.
std::vector<std::string> JobOverrides(const SchedulingArguments& arguments,
                                      const SchedulingPlan& plan, const SchedulingCase& c,
                                      const PolicyResult& policy);

}  // namespace tug

#endif  // TUG_CLI_SCHEDULING_PLAN_H_
