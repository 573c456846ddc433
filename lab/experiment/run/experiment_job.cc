// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/run/experiment_job.h"

#include <filesystem>
#include <system_error>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/cpu/cpu_affinity.h"
#include "base/files/file.h"
#include "base/files/replace_file.h"
#include "base/status_macros.h"
#include "config/job_config.h"
#include "config/placement_mode.h"
#include "config/sync_mode.h"
#include "coordinator/observe/run_folder.h"
#include "launch/hosts/ssh_hosts.h"
#include "launch/job_security.h"
#include "launch/launcher.h"
#include "launch/local_budget.h"
#include "launch/local_job.h"
#include "nlohmann/json.hpp"
#include "process/job_arguments.h"
#include "process/keys_argument.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

}  // namespace

absl::Status RunExperimentJob(const ExperimentJob& job, const std::string& out,
                              const Testbed* testbed) {
  LocalJob local;
  ASSIGN_OR_RETURN(local.executable, OwnExecutable());
  local.job_file = job.job_file;
  local.overrides = job.overrides;
  ASSIGN_OR_RETURN(const std::string text, ReadJobFile(local.job_file));
  ASSIGN_OR_RETURN(const JobConfig config, ParseJobToStart(text, local.job_file, local.overrides));
  local.job_text = text;
  local.run_dir = absl::StrCat(out, "/", job.name);
  local.coordinator_log = local.run_dir + ".log";
  local.servers = job.servers;
  local.workers = job.workers;
  local.nodes_may_leave = ContinuesWithoutNode(config);
  local.interrupt_is_error = true;
  if (testbed != nullptr) {
    local.hosts = testbed->hosts();
    if (job.hosts > 0) local.hosts.resize(job.hosts);
  }
  ASSIGN_OR_RETURN(local.security.mode, WrittenMode(text, local.job_file, local.overrides));
  ASSIGN_OR_RETURN(local.security.keys, KeysArgument().Read());
  local.beside_workers = StartsServersBesideWorkers(config);
  FitToMachine(ReadCpuBudget(), config.cluster(), local);
  const absl::Status end = RunLocalJob(local);
  if (!end.ok()) return absl::Status(end.code(), absl::StrCat(job.name, ": ", end.message()));
  std::error_code error;
  fs::remove_all(local.run_dir + "/checkpoints", error);  // the models are not needed
  return absl::OkStatus();
}

absl::Status CheckOutFolder(const std::string& out) {
  std::error_code error;
  if (out.empty() || !fs::exists(out, error)) return absl::OkStatus();
  if (fs::is_directory(out, error) && fs::is_empty(out, error)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("--out ", out, " exists and is not an empty folder; pass another folder"));
}

absl::Status WriteJson(const std::string& path, const nlohmann::ordered_json& json) {
  return WriteFile(path, json.dump(1, ' ', /*ensure_ascii=*/false,
                                   nlohmann::ordered_json::error_handler_t::replace) +
                             "\n");
}

void AddOutAndSet(CLI::App& command, const std::string& name, std::string& out,
                  std::vector<std::string>& overrides) {
  command
      .add_option("--out", out, absl::StrCat("Folder for report and runs [runs/", name, "-<n>]"))
      ->type_name("DIR");
  command
      .add_option("--set", overrides,
                  "Override a field of the jobs: path.to.field=value; may be given many times")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
}

std::string CommandLine(const std::string& name, const CLI::App& command) {
  std::string line = name;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    const bool repeats = option->get_name() == "--set";
    if (!option->get_positional() && !repeats) absl::StrAppend(&line, " ", option->get_name());
    if (option->get_items_expected_max() == 0) continue;  // a flag
    const char* before = " ";
    for (const std::string& value : option->results()) {
      const bool plain = value.find(' ') == std::string::npos;
      absl::StrAppend(&line, repeats ? " --set " : before, plain ? value : Quoted(value));
      before = ",";
    }
  }
  return line;
}

}  // namespace tug
