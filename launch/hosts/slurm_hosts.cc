// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts/slurm_hosts.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "launch/launcher.h"
#include "launch/route.h"
#include "process/environment.h"
#include "process/version.h"

namespace tug {
namespace {

constexpr uint64_t kSlurmOutputLimitBytes = uint64_t{16} << 20;
constexpr absl::Duration kScontrolTime = absl::Minutes(2);
constexpr absl::Duration kPrepareTime = absl::Minutes(5);
constexpr char kNode[] = "tug-node ";
constexpr char kNoBinding[] = "lacks support for cpu binding";
// $1: the program. On one line, because it is an argument.
constexpr char kSlurmTell[] = R"sh(if [ -x "$1" ]; then exec "$1" attend --tell; fi; )sh"
                              R"sh(printf "tug-node %s\t\t\n" "$SLURMD_NODENAME")sh";

// Runs a Slurm command to its end; `output` receives its output.
absl::StatusOr<Ended> RunTool(const std::vector<std::string>& argv, const std::string& output,
                              absl::Duration time) {
  Program tool;
  tool.name = argv[0];
  tool.argv = argv;
  tool.log_path = output;
  Launcher launcher;
  RETURN_IF_ERROR(launcher.Start(tool).status());
  const LaunchEvent event = launcher.Wait(launcher.Now() + time);
  if (event.interrupted) return absl::CancelledError("interrupted before the job had started");
  if (event.ended.has_value()) return *event.ended;
  return absl::UnavailableError(absl::StrCat("`", argv[0], "` did not finish within ",
                                             absl::FormatDuration(time),
                                             ": check Slurm with squeue and sinfo"));
}

// Options of a step that takes no resources away from other steps.
std::vector<std::string> SharedStep(size_t nodes) {
  // Unset variables of the job that would limit a step or contradict its options.
  std::vector<std::string> argv = {"env"};
  for (const char* name : {"SLURM_CPUS_PER_TASK",
                           "SRUN_CPUS_PER_TASK",
                           "SLURM_NTASKS_PER_NODE",
                           "SLURM_NTASKS",
                           "SLURM_NPROCS",
                           "SLURM_DISTRIBUTION",
                           "SLURM_CPU_BIND",
                           "SLURM_EXACT",
                           "SLURM_EXCLUSIVE",
                           "SLURM_MEM_PER_CPU",
                           "SLURM_MEM_PER_GPU",
                           "SLURM_MEM_PER_NODE",
                           "SLURM_LABELIO",
                           "SLURM_STDOUTMODE",
                           "SLURM_STDERRMODE",
                           "SLURM_STDINMODE",
                           "SLURM_THREADS_PER_CORE",
                           "SLURM_GPUS",
                           "SLURM_GPUS_PER_TASK",
                           "SLURM_GPUS_PER_SOCKET",
                           "SLURM_GPU_BIND",
                           "SLURM_CPUS_PER_GPU",
                           "SLURM_NTASKS_PER_GPU",
                           "SLURM_NTASKS_PER_CORE",
                           "SLURM_NTASKS_PER_SOCKET",
                           "SLURM_HINT",
                           "SLURM_KILL_BAD_EXIT"}) {
    argv.push_back("-u");
    argv.push_back(name);
  }
  argv.insert(argv.end(),
              {"srun", "--quiet", "--overlap", absl::StrCat("--nodes=", nodes),
               absl::StrCat("--ntasks=", nodes), "--ntasks-per-node=1", "--mem=0", "--mpi=none"});
  return argv;
}

}  // namespace

absl::StatusOr<std::vector<LaunchHost>> HostsOfAllocation(const SlurmAllocation& allocation,
                                                          const std::string& folder) {
  const std::string output = absl::StrCat(folder, "/scontrol.out");
  ASSIGN_OR_RETURN(const Ended ended, RunTool({"scontrol", "show", "hostnames", allocation.nodes},
                                              output, kScontrolTime));
  if (!ended.exited_with_zero()) {
    return absl::FailedPreconditionError(
        absl::StrCat("`scontrol show hostnames ", allocation.nodes,
                     "` failed: ", absl::StripPrefix(LastWords(output), "tug: error: ")));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(output, kSlurmOutputLimitBytes));
  std::vector<LaunchHost> hosts;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    LaunchHost host;
    host.name = host.destination = std::string(absl::StripAsciiWhitespace(line));
    host.slots = allocation.tasks[std::min(hosts.size(), allocation.tasks.size() - 1)];
    hosts.push_back(std::move(host));
  }
  if (!hosts.empty()) return hosts;
  return absl::FailedPreconditionError(
      absl::StrCat("`scontrol show hostnames ", allocation.nodes, "` returned no node"));
}

std::vector<std::string> SrunCommand(const SlurmOptions& options, const LaunchHost& host,
                                     const std::vector<std::string>& argv) {
  std::vector<std::string> command = SharedStep(1);
  // A cluster that binds would give us one core per task.
  if (options.bind_cores) command.push_back("--cpu-bind=none");
  command.push_back(absl::StrCat("--nodelist=", host.name));
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
}

absl::StatusOr<std::vector<ReadyHost>> PrepareNodes(const std::vector<LaunchHost>& hosts,
                                                    const std::string& folder,
                                                    SlurmOptions& options) {
  std::vector<std::string> argv = SharedStep(hosts.size());
  argv.push_back("--cpu-bind=none");
  argv.push_back(absl::StrCat(
      "--nodelist=", absl::StrJoin(hosts, ",", [](std::string* out, const LaunchHost& host) {
        out->append(host.name);
      })));
  argv.insert(argv.end(), {"sh", "-c", kSlurmTell, "tug", options.program});
  const std::string output = absl::StrCat(folder, "/nodes.out");
  ASSIGN_OR_RETURN(const Ended ended, RunTool(argv, output, kPrepareTime));
  if (!ended.exited_with_zero()) {
    return absl::UnavailableError(
        absl::StrCat("srun cannot start a step on the nodes of this job: ",
                     absl::StripPrefix(LastWords(output), "tug: error: ")));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(output, kSlurmOutputLimitBytes));
  options.bind_cores = !absl::StrContains(text, kNoBinding);
  std::vector<ReadyHost> ready(hosts.size());
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, kNode)) continue;
    const std::vector<std::string> told = absl::StrSplit(line, '\t');
    const auto host = std::find_if(hosts.begin(), hosts.end(),
                                   [&](const LaunchHost& one) { return one.name == told[0]; });
    if (told.size() != 3 || host == hosts.end()) continue;
    if (told[1].empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "no executable ", options.program, " on ", host->name,
          ": put tug on storage that all nodes share, or pass its path with --program"));
    }
    if (told[2] != VersionText()) {
      return absl::FailedPreconditionError(
          absl::StrCat(options.program, " on ", host->name, " reports '", told[2],
                       "', but this program is '", VersionText(), "': install this build there"));
    }
    ready[static_cast<size_t>(host - hosts.begin())] = {options.program, told[1]};
  }
  for (size_t host = 0; host < hosts.size(); ++host) {
    if (!ready[host].address.empty()) continue;
    return absl::UnavailableError(
        absl::StrCat("node ", hosts[host].name, " did not reply: ", LastWords(output)));
  }
  return ready;
}

absl::StatusOr<std::string> DescribeNode() {
  const Environment environment = ReadEnvironment();
  const std::string node = ValueOf(environment, "SLURMD_NODENAME");
  const std::string launcher = ValueOf(environment, "SLURM_LAUNCH_NODE_IPADDR");
  if (node.empty() || launcher.empty()) {
    return absl::FailedPreconditionError(
        "SLURMD_NODENAME or SLURM_LAUNCH_NODE_IPADDR is not set: this command is started by `tug "
        "launch --slurm` through srun");
  }
  ASSIGN_OR_RETURN(const std::string address, AddressToward({launcher}, {}));
  return absl::StrCat(kNode, node, "\t", address, "\t", VersionText());
}

}  // namespace tug
