#ifndef TUG_CLI_EXPERIMENT_JOB_H_
#define TUG_CLI_EXPERIMENT_JOB_H_

// What all experiments do with the jobs that they run and with what they leave.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/testbed.h"
#include "nlohmann/json_fwd.hpp"
#include "proto/job.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

// A job file and what it is to be run with.
struct ExperimentJob {
  std::string name;  // of its run folder and for people
  std::string job_file;
  std::vector<std::string> overrides;
  uint32_t workers = 1;
  uint32_t servers = 1;
  uint32_t hosts = 0;  // of a testbed, its first ones; 0: all
};

// Runs it in the folder OUT/NAME, what the coordinator says beside it in NAME.log; its checkpoints
// go at the end. `testbed`: whose hosts it is dealt to; null: this machine. Errors: those of
// ReadJobFile, ParseJobToStart and RunLocalJob, naming the job; CANCELLED is an interrupt.
// REQUIRES: the process has one thread; no more hosts than the testbed has.
absl::Status RunExperimentJob(const ExperimentJob& job, const std::string& out,
                              const Testbed* testbed);

// The configuration of a run as it was resolved. Errors: those of the file.
absl::StatusOr<JobConfig> ReadRunConfig(const std::string& run_dir);

// --out, before anything is made: ALREADY_EXISTS unless it is empty text, not there, or an empty
// folder.
absl::Status CheckOutFolder(const std::string& out);

// JSON for OUT; what the command line brought need not be UTF-8.
absl::Status WriteJson(const std::string& path, const nlohmann::ordered_json& json);

// The options --out and --set of an experiment. `name`: "sync". Both are to live as long as the
// command.
void AddOutAndSet(CLI::App& command, const std::string& name, std::string& out,
                  std::vector<std::string>& overrides);

// A command as it was typed, but for the order of its options. `name`: "tug experiment offload".
std::string CommandLine(const std::string& name, const CLI::App& command);

}  // namespace tug

#endif  // TUG_CLI_EXPERIMENT_JOB_H_
