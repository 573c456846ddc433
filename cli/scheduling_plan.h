#ifndef TUG_CLI_SCHEDULING_PLAN_H_
#define TUG_CLI_SCHEDULING_PLAN_H_

// What `tug experiment scheduling` is asked for, and the jobs that come of it.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiment/link_plan.h"
#include "experiment/scheduling_results.h"

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
  std::vector<SchedulingCase> cases;  // with their policies, not run yet
};

// Errors: INVALID_ARGUMENT, naming the option; those of LoadReplayProfile.
absl::StatusOr<SchedulingPlan> PlanScheduling(const SchedulingArguments& arguments);

// The first and the last measured step (1-based) under a policy; the job ends with the last. `auto`
// settles before.
uint64_t FirstMeasured(const SchedulingArguments& arguments, const std::string& policy);

uint64_t LastMeasured(const SchedulingArguments& arguments, const std::string& policy);

// Steps that are traced: the two before the last one. The first of them is drawn, with the forward
// pass of the second; the job ends before the measured steps would wait for their upload.
inline constexpr uint32_t kTracedSteps = 2;

// --set values of the job of a case under a policy, those of the user last.
std::vector<std::string> JobOverrides(const SchedulingArguments& arguments,
                                      const SchedulingPlan& plan, const SchedulingCase& c,
                                      const PolicyResult& policy);

}  // namespace tug

#endif  // TUG_CLI_SCHEDULING_PLAN_H_
