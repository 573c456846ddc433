#ifndef TUG_CLI_EXPERIMENT_SCHEDULING_H_
#define TUG_CLI_EXPERIMENT_SCHEDULING_H_

// `tug experiment scheduling`: the same replay under every policy, on the same link.
//
//   1. Scale (experiment/link_plan.h): sizes so that a step's bytes take --transfer seconds one way
//      over the busiest link; times so that this is `ratio` times the compute time of a step.
//   2. For each profile, ratio and policy run the job: warm-up steps, then the measured ones, two
//   of
//      the last of which are traced.
//   3. Work out the lower bound and the simulator's prediction for the same job (simulate/).
//   4. After each job write what is known: report.html, scheduling.json, scheduling.md.

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/commands.h"
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
  std::vector<SchedulingCase> cases;  // with their policies, not run yet
};

// Errors: INVALID_ARGUMENT, naming the option; those of LoadReplayProfile.
absl::StatusOr<SchedulingPlan> PlanScheduling(const SchedulingArguments& arguments);

// The first measured step (1-based) under a policy. `auto` settles before.
uint64_t FirstMeasured(const SchedulingArguments& arguments, const std::string& policy);

// --set values of the job of a case under a policy, those of the user last.
std::vector<std::string> JobOverrides(const SchedulingArguments& arguments,
                                      const SchedulingPlan& plan, const SchedulingCase& c,
                                      const PolicyResult& policy);

absl::Status RunSchedulingExperiment(const SchedulingArguments& arguments);

void AddExperimentScheduling(CLI::App& experiment, Command& chosen);

}  // namespace tug

#endif  // TUG_CLI_EXPERIMENT_SCHEDULING_H_
