// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_JOB_ARGUMENTS_H_
#define TUG_PROCESS_JOB_ARGUMENTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "process/keys_argument.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

class JobConfig;

// A job file and the command line's changes to it.
struct JobArguments {
  std::string job_file;
  std::vector<std::string> overrides;
  std::string resume;
  std::string run_dir;
  std::string init_from;
  bool trace = false;
  std::string trace_steps;  // "A..B"

  // JOB --set --resume --init-from --run-dir --trace --trace-steps
  void AddTo(CLI::App& command, bool required = true);
  // Overrides for --trace, --set, and --init-from (train.init_from).
  std::vector<std::string> Overrides() const;
  // JOB and --set for a command that resumes the job; omits options for a first start, and
  // a pipe, which cannot be named again: the checkpoint has the job.
  std::vector<std::string> WordsToResume() const;
};

// "--set", PATH=VALUE, for each override.
std::vector<std::string> SetWords(const std::vector<std::string>& overrides);

// Help text: how a job that the user watches ends.
inline constexpr char kHowJobsEnd[] =
    "Ctrl-C, SIGTERM and closing the terminal (SIGHUP, except under nohup) stop the job: it "
    "finishes the step and writes a checkpoint; a second signal, at least 1 s later, ends it at "
    "once.\n"
    "The summary begins with \"done:\" after the last step, and with \"stopped:\" or \"stopped "
    "early:\" if the job was stopped before it; the exit code is then 0. A job that failed prints "
    "\"tug: error:\" and exits with 1.\n";

// Help text: how a server or worker ends if its job needs all nodes.
inline constexpr char kHowNeededNodesEnd[] =
    "If the job cannot continue without this node (BACKUP, ALL_REDUCE, external workers), it keeps "
    "running until the job ends, for at most a minute.\n";

// Text of a job file. A command reads it only once, since it may be a pipe (`tug train <(...)`).
// Errors: as ReadTextFile.
absl::StatusOr<std::string> ReadJobFile(const std::string& job_file);

// Parses the text of `job_file` (ParseJobConfig) for a command that starts the job's workers.
// Additional error: FAILED_PRECONDITION if the workers are external programs (model.external),
// which tug cannot start.
absl::StatusOr<JobConfig> ParseJobToStart(const std::string& text, const std::string& job_file,
                                          const std::vector<std::string>& overrides);

// Selects a coordinator by run folder or by address.
struct CoordinatorArguments {
  std::string run;
  std::string address;
  KeysArgument keys;

  // RUN | --coordinator HOST:PORT, --keys
  void AddTo(CLI::App& command);
};

}  // namespace tug

#endif  // TUG_PROCESS_JOB_ARGUMENTS_H_
