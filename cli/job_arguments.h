#ifndef TUG_CLI_JOB_ARGUMENTS_H_
#define TUG_CLI_JOB_ARGUMENTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/keys_argument.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

class JobConfig;

// A job file and what the command line changes in it.
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
  // What --trace says, --set values, and train.init_from of --init-from.
  std::vector<std::string> Overrides() const;
  // Of a command that resumes the job: JOB and --set, without what is for a first start only. A
  // pipe cannot be named again: it is "JOB".
  std::vector<std::string> WordsToResume() const;
};

// "--set", PATH=VALUE, and so on.
std::vector<std::string> SetWords(const std::vector<std::string>& overrides);

// How a job that a person watches ends, for --help.
inline constexpr char kHowJobsEnd[] =
    "Ctrl-C, SIGTERM and the end of its terminal (SIGHUP, but not under nohup) end the job in "
    "order: it finishes the step and writes a checkpoint; another one, a second or more later, "
    "ends it at once.\n"
    "The summary begins with \"done:\" when all steps were made, and with \"stopped:\" or "
    "\"stopped early:\" when the job was ended in order before; the exit code is 0 for these. It "
    "is 1 with \"tug: error:\" for a job that failed.\n";

// How a server or worker of a job that needs all its nodes ends, for --help.
inline constexpr char kHowNeededNodesEnd[] =
    "Where the job cannot go on without it (BACKUP, ALL_REDUCE, programs of their own) it goes on "
    "until the job ends, for a minute at most.\n";

// The text of a job file. A command reads it once, since it may be a pipe (`tug train <(...)`).
// Errors: as ReadTextFile.
absl::StatusOr<std::string> ReadJobFile(const std::string& job_file);

// ParseJobConfig of the text of `job_file`, for a command that starts the job's workers. Errors
// also: FAILED_PRECONDITION if the workers are programs of the user's (model.external), which tug
// cannot start.
absl::StatusOr<JobConfig> ParseJobToStart(const std::string& text, const std::string& job_file,
                                          const std::vector<std::string>& overrides);

// Which coordinator: by its run folder, or by its address.
struct CoordinatorArguments {
  std::string run;
  std::string address;
  KeysArgument keys;

  // RUN | --coordinator HOST:PORT, --keys
  void AddTo(CLI::App& command);
};

}  // namespace tug

#endif  // TUG_CLI_JOB_ARGUMENTS_H_
