#ifndef TUG_CLI_EXPERIMENT_OFFLOAD_H_
#define TUG_CLI_EXPERIMENT_OFFLOAD_H_

// `tug experiment offload`: what it costs to have weights and optimizer state in the host's memory,
// in place of the device's, and how much of it is hidden.
//
//   1. Plan (offload_plan.h): the same training, batch and steps for each case.
//   2. Run them one after the other: `plain` is `tug bench training`, the others are jobs with
//      servers on this machine whose measured steps are traced.
//   3. After each write what is known: report.html, offload.json, offload.md.
//
// A case that fails is a line of the report, and the others run all the same; the experiment then
// ends with an error. An interrupt ends the case that runs, and the experiment with it.

#include "absl/status/status.h"
#include "cli/commands.h"
#include "cli/offload_plan.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

absl::Status RunOffloadExperiment(const OffloadArguments& arguments);

void AddExperimentOffload(CLI::App& experiment, Command& chosen);

}  // namespace tug

#endif  // TUG_CLI_EXPERIMENT_OFFLOAD_H_
