// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_JOB_H_
#define TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_JOB_H_

// Runs the jobs of experiments and reads what they leave.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/hosts/testbed.h"
#include "nlohmann/json_fwd.hpp"
#include "proto/job.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

// A job file, and the settings to run it with.
struct ExperimentJob {
  std::string name;  // of its run folder, and for display
  std::string job_file;
  std::vector<std::string> overrides;
  uint32_t workers = 1;
  uint32_t servers = 1;
  uint32_t hosts = 0;  // number of testbed hosts to use, from the first one on; 0: all
};

// Runs the job in the folder OUT/NAME, with the coordinator's output in OUT/NAME.log, and deletes
// its checkpoints at the end. `testbed`: hosts that its nodes are assigned to; null: this machine.
// Errors: those of ReadJobFile, ParseJobToStart and RunLocalJob, naming the job; CANCELLED:
// interrupted. REQUIRES: the process has one thread; no more hosts than the testbed has.
absl::Status RunExperimentJob(const ExperimentJob& job, const std::string& out,
                              const Testbed* testbed);

// Checks --out before anything is created: ALREADY_EXISTS unless it is empty text, does not exist,
// or is an empty folder.
absl::Status CheckOutFolder(const std::string& out);

// Writes JSON to OUT. Text from the command line need not be UTF-8.
absl::Status WriteJson(const std::string& path, const nlohmann::ordered_json& json);

// Adds the options --out and --set of an experiment. `name`: "offload". REQUIRES: `out` and
// `overrides` outlive the command.
void AddOutAndSet(CLI::App& command, const std::string& name, std::string& out,
                  std::vector<std::string>& overrides);

// The command line as typed, except for the order of options. `name`: "tug experiment offload".
std::string CommandLine(const std::string& name, const CLI::App& command);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_JOB_H_
