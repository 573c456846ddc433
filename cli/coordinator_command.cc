// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/cpu/cpu_affinity.h"
#include "base/files/text_file.h"
#include "base/standard_error.h"
#include "base/status_macros.h"
#include "config/job_config.h"
#include "coordinator/observe/run_folder.h"
#include "coordinator/service/daemon.h"
#include "launch/job_security.h"
#include "launch/job_source.h"
#include "launch/local_budget.h"
#include "launch/rank_environment.h"
#include "launch/route.h"
#include "prediction/step_prediction.h"
#include "process/commands.h"
#include "process/environment.h"
#include "process/interrupts.h"
#include "process/job_arguments.h"
#include "process/keys_argument.h"
#include "process/log_format.h"

namespace tug {
namespace {

struct CoordinatorCommand {
  JobArguments job;
  std::string listen;  // empty: use ListenAddress
  std::vector<std::string> interfaces;
  // Run folder of a job to recover. If set, of the other fields only keys, keep_keys and ready_fd
  // are read.
  std::string recover;
  KeysArgument keys;
  bool keep_keys = false;
  int ready_fd = -1;
  bool across_hosts = false;
  bool recover_or_start = false;
  std::string continue_with;
};

// Reports address and run folder to `tug train` or `tug launch`: "ADDRESS\tRUN_DIR\n".
void ReportToParent(int fd, const std::string& address, const std::string& run_dir) {
  if (fd < 0) return;
  const std::string line = absl::StrCat(address, "\t", run_dir, "\n");
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    Warn("cannot report the address to the parent process");
  }
  close(fd);
}

// Whether the tuner of comm.scheduler AUTO can predict steps: only replays without clipping, whose
// traffic is known, can be simulated.
bool CanBePredicted(const JobConfig& config) {
  const CommConfig& comm = config.comm();
  return config.compute() == JobConfig::REPLAY &&
         config.optimizer().clip() == OptimizerConfig::OFF && !comm.push_codec().has_auto_() &&
         comm.pull_format() != CommConfig::PULL_AUTO;
}

absl::StatusOr<std::vector<double>> Predict(const JobConfig& job,
                                            const StepPredictionWanted& wanted,
                                            const std::stop_token& stop) {
  return PredictSteps(job, {wanted.measured, wanted.measured_seconds}, wanted.points,
                      [&] { return stop.stop_requested(); });
}

// Default without --listen and environment: reachable from this machine only.
constexpr char kDefaultListen[] = "127.0.0.1:7070";

// Warning about `host`, which the coordinator announces unchanged; may be empty.
std::string WarningOf(const std::string& host) {
  const std::string warning = LoopbackWarning(host, "the coordinator");
  return warning.empty() ? "" : absl::StrCat("warning: ", warning);
}

// Sets `warning` to WarningOf the address, unless its host comes from an interface.
absl::StatusOr<HostPort> ListenAddress(const CoordinatorCommand& command, std::string& warning) {
  if (!command.listen.empty()) {
    ASSIGN_OR_RETURN(HostPort listen, ParseHostPort(command.listen));
    warning = WarningOf(listen.host);
    return listen;
  }
  ASSIGN_OR_RETURN(const std::string told, CoordinatorAddressOf(ReadEnvironment()));
  ASSIGN_OR_RETURN(HostPort address, ParseHostPort(told.empty() ? kDefaultListen : told));
  if (!command.interfaces.empty()) {
    ASSIGN_OR_RETURN(address.host, AddressOfInterface(command.interfaces));
  } else {
    warning = WarningOf(address.host);
    ASSIGN_OR_RETURN(address.host, Ipv4AddressOf(address.host));
  }
  return address;
}

// Reads the job file and options of a new job.
absl::Status ReadNewJob(const CoordinatorCommand& command, CoordinatorDaemonOptions& options) {
  if (command.job.job_file.empty() && command.job.resume.empty()) {
    return absl::InvalidArgumentError(
        "no job given: name a job file, --resume RUN to continue a run, or --recover RUN if its "
        "coordinator has died");
  }
  ASSIGN_OR_RETURN(const JobSource job, ReadJob(command.job));
  std::vector<std::string> overrides = command.job.Overrides();
  ASSIGN_OR_RETURN(const SecurityConfig::Mode written, WrittenMode(job.text, job.name, overrides));
  // The user's keys determine the mode if the job does not set it.
  if (written == SecurityConfig::MODE_DEFAULT) {
    overrides.push_back(ModeOverride({.mode = options.keys.mode, .keys = {}}));
  }
  ASSIGN_OR_RETURN(options.config, ParseJobConfig(job.text, job.name, overrides));
  ASSIGN_OR_RETURN(options.listen, ListenAddress(command, options.note));
  options.run_dir = command.job.run_dir;
  options.resume = command.job.resume;
  if (options.note.empty() && command.ready_fd >= 0 && !command.across_hosts)
    options.note = LocalPlanText(ReadCpuBudget(), options.config.cluster());
  if (CanBePredicted(options.config)) options.predict_steps = Predict;
  return absl::OkStatus();
}

// Run folder of the job to recover; empty: start a new job.
absl::StatusOr<std::string> FolderToRecover(const CoordinatorCommand& command) {
  if (!command.recover_or_start) return command.recover;
  if (command.job.run_dir.empty()) {
    return absl::InvalidArgumentError("--recover-or-start needs --run-dir DIR");
  }
  std::error_code error;
  const bool died =
      std::filesystem::exists(std::filesystem::path(command.job.run_dir) / kJournalFile, error);
  return died ? command.job.run_dir : "";
}

absl::Status Coordinate(const CoordinatorCommand& command) {
  CoordinatorDaemonOptions options;
  ASSIGN_OR_RETURN(options.recover, FolderToRecover(command));
  options.keep_keys = command.keep_keys || (command.keys.path.empty() && HasKeys(options.recover));
  ASSIGN_OR_RETURN(options.keys, command.keys.Read(options.recover));
  if (options.recover.empty()) {
    RETURN_IF_ERROR(ReadNewJob(command, options));
  } else {
    options.predict_steps = Predict;  // if the job asks for it
  }
  options.say_in_log = LogIsForMachines();
  options.continue_with = command.continue_with;
  options.launched = command.ready_fd >= 0;
  Interrupts interrupts;
  options.on_listening = [&](const std::string& address, const std::string& run_dir) {
    ReportToParent(command.ready_fd, address, run_dir);
  };
  options.stop_wanted = [&] {
    const int count = interrupts.Count();
    if (count > 1) {
      WriteStandardError("\ntug: error: interrupted twice: exiting without a checkpoint\n");
      std::_Exit(1);
    }
    return count == 1;
  };
  return RunCoordinator(options);
}

}  // namespace

void AddCoordinatorCommand(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<CoordinatorCommand>();
  CLI::App* command = app.add_subcommand(
      "coordinator", "Daemon: coordinates one job, whose nodes may run on any host");
  arguments->job.AddTo(*command, /*required=*/false);
  arguments->keys.AddTo(*command);
  command
      ->add_option("--recover", arguments->recover,
                   "Recover the job of this run folder, whose coordinator has died, while its "
                   "nodes keep running; needs no JOB")
      ->type_name("RUN");
  CLI::Option* listen =
      command->add_option("--listen", arguments->listen,
                          "Address for nodes to connect to; port 0 picks a free port. Default: "
                          "MASTER_ADDR:MASTER_PORT of the environment, else 127.0.0.1:7070");
  listen->type_name("HOST:PORT");
  command
      ->add_flag(
          "--recover-or-start", arguments->recover_or_start,
          "Recover the job of --run-dir if its coordinator has died; otherwise start the job. "
          "For supervisors that restart this command, such as systemd")
      ->excludes("--recover");
  command
      ->add_option("--interface", arguments->interfaces,
                   "Instead of --listen: the address of the first of these interfaces that has "
                   "one; port MASTER_PORT, else 7070")
      ->type_name("NAME,..")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->excludes(listen);
  command
      ->add_option("--ready-fd", arguments->ready_fd, "File descriptor for address and run folder")
      ->group("");  // for `tug train`
  command->add_flag("--keep-keys", arguments->keep_keys, "Keys were made for this job")
      ->group("");  // for tug train and tug launch
  command->add_option("--continue-with", arguments->continue_with, "Command that continues the job")
      ->group("");  // for tug train and tug launch
  command->add_flag("--across-hosts", arguments->across_hosts, "Nodes are on other hosts too")
      ->group("");  // for `tug launch`
  command->footer(
      std::string(kHowJobsEnd) +
      "Servers and workers need only --coordinator HOST:PORT; all hosts must see the run folder "
      "under the same path.\n"
      "Example, on three hosts that have the same job.keys (tug keys job.keys):\n"
      "  a$ tug coordinator job.textproto --set security.mode=TOKEN --keys job.keys --listen "
      "10.0.0.1:7070\n"
      "  b$ tug server --coordinator 10.0.0.1:7070 --keys job.keys --listen 10.0.0.2\n"
      "  c$ tug worker --coordinator 10.0.0.1:7070 --keys job.keys\n"
      "If another launcher sets MASTER_ADDR and MASTER_PORT, omit --coordinator and the "
      "coordinator's --listen.\n"
      "If the coordinator dies (nodes wait for fault.coordinator_timeout_ms):\n"
      "  a$ tug coordinator --recover runs/job-1");
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return Coordinate(*arguments); }; });
}

}  // namespace tug
