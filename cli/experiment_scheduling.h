#ifndef TUG_CLI_EXPERIMENT_SCHEDULING_H_
#define TUG_CLI_EXPERIMENT_SCHEDULING_H_

// `tug experiment scheduling`: the same replay under every policy, on the same link.
//
//   1. Plan (scheduling_plan.h) and scale (experiment/link_plan.h): sizes so that a step's bytes
//      take --transfer seconds one way over the busiest link; times so that this is `ratio`
//      times the compute time of a step.
//   2. For each profile, ratio and policy run the job: warm-up steps, then the measured ones, two
//      of the last of which are traced.
//   3. Work out the lower bound and the simulator's prediction for the same job (simulate/).
//   4. After each job write what is known: report.html, scheduling.json, scheduling.md.
//
// An interrupt ends the job that runs, and the experiment with it.

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "cli/commands.h"
#include "cli/scheduling_plan.h"

namespace tug {

absl::Status RunSchedulingExperiment(const SchedulingArguments& arguments);

void AddExperimentScheduling(CLI::App& experiment, Command& chosen);

}  // namespace tug

#endif  // TUG_CLI_EXPERIMENT_SCHEDULING_H_
