#ifndef TUG_CLI_EXPERIMENT_SYNC_H_
#define TUG_CLI_EXPERIMENT_SYNC_H_

// `tug experiment sync`: the same job under every sync policy, undisturbed, with one worker that is
// slow throughout, and with pauses of all at random.
//
//   1. Plan (sync_plan.h): the jobs of both parts, throughput and learning.
//   2. Run them one after the other; how long random pauses of the training are follows from its
//      undisturbed steps. Beside the slow worker, one job of each policy is traced from its first
//      step on.
//   3. After each job write what is known: report.html, sync.json, sync.md.
//
// An interrupt ends the job that runs, and the experiment with it.

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "cli/commands.h"
#include "cli/sync_plan.h"

namespace tug {

absl::Status RunSyncExperiment(const SyncArguments& arguments);

void AddExperimentSync(CLI::App& experiment, Command& chosen);

}  // namespace tug

#endif  // TUG_CLI_EXPERIMENT_SYNC_H_
