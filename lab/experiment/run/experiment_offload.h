// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_OFFLOAD_H_
#define TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_OFFLOAD_H_

// `tug experiment offload`: the cost of keeping weights and optimizer state in host memory instead
// of device memory, and how much of it is hidden.
//
//   1. Plan (offload_plan.h): the same training, batch and steps for each case.
//   2. Run the cases one after another: `plain` is `tug bench training`, the others are jobs with
//      servers on this machine, whose measured steps are traced.
//   3. After each case write the results so far: report.html, offload.json, offload.md.
//
// A failed case is a row of the report; the others still run, and the experiment ends with an
// error. An interrupt ends the running case and the experiment.

#include "absl/status/status.h"
#include "lab/experiment/run/offload_plan.h"
#include "process/commands.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

absl::Status RunOffloadExperiment(const OffloadArguments& arguments);

void AddExperimentOffload(CLI::App& experiment, Command& chosen);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_OFFLOAD_H_
