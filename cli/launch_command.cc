// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/files/file.h"
#include "base/files/shell_word.h"
#include "base/status_macros.h"
#include "cli/kubernetes_command.h"
#include "config/job_config.h"
#include "config/placement_mode.h"
#include "control/control_client.h"
#include "launch/attach.h"
#include "launch/attend.h"
#include "launch/hosts/hosts_file.h"
#include "launch/hosts/slurm_allocation.h"
#include "launch/hosts/slurm_hosts.h"
#include "launch/hosts/ssh_arguments.h"
#include "launch/hosts/ssh_hosts.h"
#include "launch/job_security.h"
#include "launch/job_source.h"
#include "launch/launcher.h"
#include "launch/local_job.h"
#include "launch/remote_program.h"
#include "launch/restarted_run.h"
#include "process/commands.h"
#include "process/environment.h"
#include "process/job_arguments.h"
#include "process/keys_argument.h"
#include "process/temporary_folder.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

constexpr int kWidestName = 15;  // "worker-99" and the like next to "coordinator"

struct LaunchArguments {
  JobArguments job;
  std::string hosts_file;
  SshArguments ssh;
  KeysArgument keys;
  bool detached = false;
  bool slurm = false;                   // instead of a hosts file
  std::vector<std::string> interfaces;  // for hosts that name none
  KubernetesArguments kubernetes;
};

// A job on other hosts, and how to start its programs there.
struct Launched {
  std::string executable;  // tug, here
  std::string job_text;
  TemporaryFolder folder;
  std::string working_folder;
  SshOptions ssh;
  std::optional<SlurmOptions> slurm;  // instead of ssh
  absl::Duration silence;             // after which a host counts as lost
  bool detached = false;
  std::vector<LaunchHost> hosts;  // hosts in use
  std::vector<ReadyHost> ready;   // by host
  int name_width = 0;             // width of the host names

  // LocalJob::elsewhere
  absl::StatusOr<Program> StandIn(const Program& program, const std::string& run_dir) const;
  std::vector<std::string> PeersOf(const Program& program, size_t host) const;
  std::vector<std::string> ConnectionTo(size_t host) const;
};

std::vector<std::string> Launched::PeersOf(const Program& program, size_t host) const {
  const auto& argv = program.argv;
  const auto flag = std::find(argv.begin(), argv.end(), "--coordinator");
  if (flag != argv.end() && flag + 1 != argv.end()) {
    const absl::StatusOr<HostPort> coordinator = ParseHostPort(flag[1]);
    if (coordinator.ok()) return {coordinator->host};
  }
  std::vector<std::string> peers;
  for (size_t other = 0; other < ready.size(); ++other) {
    if (other != host) peers.push_back(ready[other].address);
  }
  // Used if the other addresses are loopback, which is no route from another host, or if there is
  // only one host.
  peers.push_back(ready[host].address);
  return peers;
}

std::vector<std::string> Launched::ConnectionTo(size_t host) const {
  const std::string& program = ready[host].program;
  if (slurm.has_value()) return SrunCommand(*slurm, hosts[host], {program, "attend"});
  return SshCommand(ssh, hosts[host], absl::StrCat("exec ", Quoted(program), " attend"));
}

absl::StatusOr<Program> Launched::StandIn(const Program& program,
                                          const std::string& run_dir) const {
  const size_t host = static_cast<size_t>(
      std::find_if(hosts.begin(), hosts.end(),
                   [&](const LaunchHost& candidate) { return candidate.name == program.host; }) -
      hosts.begin());
  const bool coordinates = program.keep_fd >= 0;
  Attachment attachment;
  attachment.connection = ConnectionTo(host);
  attachment.by_srun = slurm.has_value();
  attachment.host = program.host;
  attachment.prefix =
      absl::StrFormat("%-*s %-*s | ", kWidestName, program.name, name_width, program.host);
  attachment.log_path = absl::StrCat(folder.path(), "/", program.name, ".log");
  RemoteProgram& remote = attachment.program;
  remote.name = program.name;
  remote.argv.assign(program.argv.begin() + 1, program.argv.end());
  remote.folder = working_folder;
  remote.peers = PeersOf(program, host);
  remote.interfaces = hosts[host].interfaces;
  remote.run_dir = run_dir;
  remote.silence = silence;
  remote.detached = detached;
  remote.ends_in_order = coordinates;
  remote.ignores_stop = slurm.has_value();
  Program stand_in;
  stand_in.name = program.name;
  stand_in.log_path = attachment.log_path;
  stand_in.writes_log = true;
  stand_in.keys = program.keys;
  const std::string path = absl::StrCat(folder.path(), "/", program.name, ".json");
  stand_in.argv = {executable, "attach", path};
  if (coordinates) {
    const std::string fd = std::to_string(program.keep_fd);
    std::replace(remote.argv.begin(), remote.argv.end(), fd, std::string(kReadyArgument));
    remote.argv.push_back("--across-hosts");
    remote.input = job_text;
    stand_in.keep_fd = program.keep_fd;
    stand_in.argv.push_back("--ready-fd");
    stand_in.argv.push_back(fd);
  }
  ASSIGN_OR_RETURN(const std::string text, ToText(attachment));
  RETURN_IF_ERROR(folder.MakeAgain());
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return FileError(errno, "write", path);
  return stand_in;
}

// Drops hosts without a process, which need not be reachable.
void KeepUsed(std::vector<LaunchHost>& hosts, DealtProcesses& dealt) {
  std::vector<LaunchHost> used;
  std::map<size_t, size_t> renumbered;
  const auto keep = [&](size_t& host) {
    const auto [found, is_new] = renumbered.emplace(host, used.size());
    if (is_new) used.push_back(hosts[host]);
    host = found->second;
  };
  keep(dealt.coordinator);
  for (size_t& host : dealt.servers) keep(host);
  for (size_t& host : dealt.workers) keep(host);
  hosts = std::move(used);
}

std::vector<std::string> LaunchWordsToResume(const LaunchArguments& arguments) {
  std::vector<std::string> words = {"tug", "launch"};
  const auto add = [&words](const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  add(arguments.job.WordsToResume());
  if (arguments.slurm) {
    add({"--slurm"});
  } else {
    add({"--hosts", arguments.hosts_file});
  }
  add(arguments.keys.Words());
  if (!arguments.interfaces.empty()) {
    add({"--interface", absl::StrJoin(arguments.interfaces, ",")});
  }
  add(arguments.ssh.Words());
  if (arguments.detached) add({"--detach"});
  return words;
}

// The command line as a job for the supervisor.
absl::StatusOr<LocalJob> JobOf(const LaunchArguments& arguments, const JobConfig& config,
                               const DealtProcesses& dealt, const Launched& launched) {
  LocalJob job;
  job.executable = launched.executable;
  job.job_file = kJobOnInput;  // RemoteProgram::input
  job.overrides = arguments.job.Overrides();
  std::error_code error;
  // Absolute, since the coordinator may not have our working folder.
  if (!arguments.job.resume.empty()) job.resume = fs::absolute(arguments.job.resume, error);
  if (!arguments.job.run_dir.empty()) job.run_dir = fs::absolute(arguments.job.run_dir, error);
  job.servers = config.cluster().servers();
  job.workers = config.cluster().workers();
  job.spare_servers = config.cluster().spare_servers();
  const auto place = [&](size_t host) {
    return NetworkHost{launched.hosts[host].name, kAddressArgument};
  };
  job.hosts = {place(dealt.coordinator)};
  for (const size_t host : dealt.servers) job.server_hosts.push_back(place(host));
  for (const size_t host : dealt.workers) job.worker_hosts.push_back(place(host));
  job.log_folder = launched.folder.path();
  job.coordinator_log = absl::StrCat(launched.folder.path(), "/coordinator.log");
  ASSIGN_OR_RETURN(job.security.mode,
                   WrittenMode(launched.job_text, "the job", arguments.job.Overrides()));
  ASSIGN_OR_RETURN(job.security.keys, arguments.keys.Read());
  job.command = LaunchWordsToResume(arguments);
  job.keeps_log = true;
  job.elsewhere = [&launched](const Program& program, const std::string& run_dir) {
    return launched.StandIn(program, run_dir);
  };
  return job;
}

absl::StatusOr<std::vector<LaunchHost>> HostsOf(const LaunchArguments& arguments,
                                                const std::string& folder) {
  std::vector<LaunchHost> hosts;
  if (arguments.slurm) {
    ASSIGN_OR_RETURN(const SlurmAllocation allocation, SlurmAllocationOf(ReadEnvironment()));
    ASSIGN_OR_RETURN(hosts, HostsOfAllocation(allocation, folder));
  } else {
    ASSIGN_OR_RETURN(hosts, ReadHostsFile(arguments.hosts_file));
  }
  for (LaunchHost& host : hosts) {
    if (host.interfaces.empty()) host.interfaces = arguments.interfaces;
  }
  return hosts;
}

// Finds the program on the hosts, or copies it there.
absl::Status Prepare(const LaunchArguments& arguments, Launched& launched) {
  if (arguments.slurm) {
    launched.slurm.emplace();
    const std::string& program = arguments.ssh.program;
    launched.slurm->program = program.empty() ? launched.executable : program;
    ASSIGN_OR_RETURN(launched.ready,
                     PrepareNodes(launched.hosts, launched.folder.path(), *launched.slurm));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(launched.ssh, arguments.ssh.Options(launched.silence));
  ASSIGN_OR_RETURN(launched.ready,
                   PrepareHosts(launched.hosts, launched.ssh, launched.folder.path()));
  return absl::OkStatus();
}

absl::Status Launch(LaunchArguments arguments) {
  if (arguments.hosts_file.empty() && !arguments.slurm) {
    return absl::InvalidArgumentError(
        "no hosts given: pass --hosts FILE, or --slurm inside a Slurm allocation");
  }
  // Detect mistakes before moving a run folder aside or connecting to a host.
  Launched launched;
  ASSIGN_OR_RETURN(const JobSource source, ReadJob(arguments.job));
  launched.job_text = source.text;
  const auto parse = [&] {
    return ParseJobToStart(source.text, source.name, arguments.job.Overrides());
  };
  RETURN_IF_ERROR(parse().status());
  if (arguments.slurm) {
    ASSIGN_OR_RETURN(const SlurmAllocation allocation, SlurmAllocationOf(ReadEnvironment()));
    RETURN_IF_ERROR(ResumeAfterRestart(allocation.restarts, arguments.job));
  }
  ASSIGN_OR_RETURN(const JobConfig config, parse());
  RETURN_IF_ERROR(launched.folder.Make("launch"));
  ASSIGN_OR_RETURN(launched.hosts, HostsOf(arguments, launched.folder.path()));
  ASSIGN_OR_RETURN(
      DealtProcesses dealt,
      DealProcesses(launched.hosts,
                    {.servers = config.cluster().servers() + config.cluster().spare_servers(),
                     .workers = config.cluster().workers(),
                     .servers_beside_workers = StartsServersBesideWorkers(config)}));
  KeepUsed(launched.hosts, dealt);
  for (const LaunchHost& host : launched.hosts)
    launched.name_width = std::max(launched.name_width, static_cast<int>(host.name.size()));
  launched.silence = absl::Milliseconds(config.fault().failure_timeout_ms());
  launched.detached = arguments.detached;
  ASSIGN_OR_RETURN(launched.executable, OwnExecutable());
  std::error_code error;
  launched.working_folder = fs::current_path(error).string();
  RETURN_IF_ERROR(Prepare(arguments, launched));
  ASSIGN_OR_RETURN(const LocalJob job, JobOf(arguments, config, dealt, launched));
  return RunLocalJob(job);
}

void AddAttachCommand(CLI::App& app, Command& chosen) {
  auto path = std::make_shared<std::string>();
  auto ready_fd = std::make_shared<int>(-1);
  CLI::App* command = app.add_subcommand(
      "attach", "Internal: represents a program that `tug launch` runs on another host");
  command->group("");
  command->add_option("FILE", *path, "File that describes the program")->required();
  command->add_option("--ready-fd", *ready_fd, "File descriptor for address and run folder");
  command->callback([path, ready_fd, &chosen] {
    chosen = [path, ready_fd] { return Attach(*path, *ready_fd); };
  });
}

void AddAttendCommand(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand(
      "attend", "Internal: runs one daemon of `tug launch` on this host while the launcher lives");
  command->group("");
  auto tells = std::make_shared<bool>(false);
  command->add_flag("--tell", *tells, "Only print the name and address of this Slurm node");
  command->callback([tells, &chosen] {
    chosen = [tells]() -> absl::Status {
      if (*tells) {
        ASSIGN_OR_RETURN(const std::string line, DescribeNode());
        std::printf("%s\n", line.c_str());
        return absl::OkStatus();
      }
      ASSIGN_OR_RETURN(const int wait_status, Attend());
      return wait_status == 0 ? absl::OkStatus() : absl::AbortedError("");  // already reported
    };
  });
}

}  // namespace

void AddLaunchCommands(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<LaunchArguments>();
  CLI::App* command = app.add_subcommand(
      "launch",
      "Runs a job on hosts reached by ssh, or on those of a Slurm allocation: starts coordinator, "
      "servers and workers there, shows their output, and ends them");
  arguments->job.AddTo(*command, /*required=*/false);
  arguments->keys.AddTo(*command);
  CLI::Option* hosts =
      command->add_option("--hosts", arguments->hosts_file,
                          "File with a line for each host: [user@]host[:port] [slots=N] "
                          "[role=coordinator|server|worker[,...]] [interface=NAME[,NAME]]");
  hosts->type_name("FILE");
  CLI::Option* slurm = command->add_flag(
      "--slurm", arguments->slurm,
      "Instead of --hosts: use the nodes of the current sbatch or salloc allocation, each with as "
      "many slots as it has tasks; daemons run as its steps (srun). After a requeue the job "
      "continues from the newest checkpoint of --run-dir");
  slurm->excludes(hosts);
  command
      ->add_option("--interface", arguments->interfaces,
                   "Interfaces by which daemons reach each other, in order of preference, for "
                   "hosts whose line names none. Default: the interface of the route to the peer")
      ->type_name("NAME,..")
      ->delimiter(',')
      ->allow_extra_args(false);
  arguments->ssh.AddTo(*command);
  for (const char* by_ssh : {"--ssh", "--bundle"}) slurm->excludes(command->get_option(by_ssh));
  CLI::Option* program = command->get_option("--program");
  program->description(absl::StrCat(program->get_description(),
                                    "; with --slurm: the path of this program, on all nodes"));
  command
      ->add_flag("--detach", arguments->detached,
                 "Daemons keep running after this command ends; stop them with `tug stop`. Without "
                 "--detach they end within 10 s after it")
      ->excludes(slurm);
  command->footer(
      "ssh must reach every host without a password. The run folder and the text must have the "
      "same path on all hosts, e.g. on shared storage.\n" +
      std::string(kHowJobsEnd) +
      "Examples:\n"
      "  tug launch job.textproto --hosts hosts.txt\n"
      "  tug launch job.textproto --hosts hosts.txt --ssh \"ssh -F my_config\" --run-dir "
      "/shared/runs/a\n"
      "  sbatch deploy/slurm/train.sbatch        # or, in a shell of salloc --nodes=2 --ntasks=6:\n"
      "  tug launch job.textproto --slurm --run-dir /shared/runs/a\n"
      "  tug launch job.textproto --kubernetes --image registry/tugboat > job.yaml");
  arguments->kubernetes.AddTo(*command);
  command->callback([arguments, &chosen] {
    chosen = [arguments] {
      return arguments->kubernetes.wanted ? PrintKubernetes(arguments->job, arguments->kubernetes)
                                          : Launch(*arguments);
    };
  });
  AddAttendCommand(app, chosen);
  AddAttachCommand(app, chosen);
}

}  // namespace tug
