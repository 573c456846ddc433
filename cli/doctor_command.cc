// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/files/shell_word.h"
#include "base/standard_error.h"
#include "base/status_macros.h"
#include "config/job_config.h"
#include "doctor/doctor_checks.h"
#include "doctor/doctor_hosts.h"
#include "doctor/doctor_needs.h"
#include "doctor/doctor_probe.h"
#include "kernels/cuda/device/device.h"
#include "launch/hosts/hosts_file.h"
#include "launch/hosts/ssh_arguments.h"
#include "launch/hosts/ssh_hosts.h"
#include "launch/launcher.h"
#include "nlohmann/json.hpp"
#include "process/environment.h"
#include "process/temporary_folder.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kSilence = absl::Seconds(15);
constexpr double kShortestStream_s = 0.05;
constexpr double kLongestStream_s = 1;

struct DoctorArguments {
  std::string job_file;
  std::vector<std::string> overrides;
  std::string hosts_file;
  SshArguments ssh;
  std::string run_dir;
  double seconds = 60;
  bool json = false;
};

GpuFacts FindGpus() {
  GpuFacts gpus;
  for (const int number : kernels::cuda::ListDevices()) {
    if (!kernels::cuda::UseDevice(number).ok()) continue;
    const auto facts = kernels::cuda::GetDeviceFacts();
    if (facts.ok()) gpus.names.push_back(facts->name);
  }
  if (gpus.names.empty()) {
    const absl::Status status = kernels::cuda::CheckGpu();
    gpus.none_because = status.ok() ? "no GPU" : std::string(status.message());
  }
  return gpus;
}

absl::Status RunProbe() {
  const Environment environment = ReadEnvironment();
  return Probe(
      STDIN_FILENO, STDOUT_FILENO, FindGpus,
      {.home = ValueOf(environment, "HOME"), .cache_home = ValueOf(environment, "XDG_CACHE_HOME")});
}

// One examination of hosts, from the first login to the last line.
class Examination {
 public:
  explicit Examination(const DoctorArguments& arguments) : arguments_(arguments) {}

  absl::Status Run() {
    RETURN_IF_ERROR(ReadArguments());
    RETURN_IF_ERROR(folder_.Make("doctor"));
    RETURN_IF_ERROR(PrepareAll());
    ProbedHosts probed(folder_.path());
    RETURN_IF_ERROR(StartProbes(probed));
    // Report findings even if a host stops replying later.
    for (const auto look : {&Examination::LookAtHosts, &Examination::LookBetweenHosts}) {
      const absl::Status looked = (this->*look)(probed);
      if (looked.ok()) continue;
      if (absl::IsCancelled(looked)) return looked;
      findings_.push_back(
          {FindingLevel::kProblem, "hosts", kConnectionCheck, std::string(looked.message()),
           "check the mounts and the network of that host, then run tug doctor again"});
      break;
    }
    return Show();
  }

 private:
  // A host of the hosts file, how to run tug there, and its requirements.
  struct Examined {
    LaunchHost host;
    ReadyHost ready;
    HostNeeds needs;
  };

  absl::Status ReadArguments() {
    if (!arguments_.job_file.empty()) {
      ASSIGN_OR_RETURN(job_, LoadJobConfig(arguments_.job_file, arguments_.overrides));
    }
    if (arguments_.hosts_file.empty()) {
      LaunchHost here{.name = "here"};
      hosts_ = {here};
    } else {
      ASSIGN_OR_RETURN(hosts_, ReadHostsFile(arguments_.hosts_file));
    }
    needs_.resize(hosts_.size());
    if (job_.has_value()) {
      ASSIGN_OR_RETURN(needs_, NeedsOf(*job_, hosts_));
    }
    for (HostNeeds& needs : needs_) needs.by_login = !arguments_.hosts_file.empty();
    ASSIGN_OR_RETURN(ssh_, arguments_.ssh.Options(kSilence));
    ASSIGN_OR_RETURN(executable_, OwnExecutable());
    return absl::OkStatus();
  }

  // A host that cannot be prepared becomes a finding, and is not examined further.
  absl::Status PrepareAll() {
    if (arguments_.hosts_file.empty()) {
      examined_ = {{hosts_[0], {executable_, "127.0.0.1"}, needs_[0]}};
      return absl::OkStatus();
    }
    Progress(absl::StrCat("logging in to ", hosts_.size(), " hosts"));
    ASSIGN_OR_RETURN(const auto prepared, PrepareEachHost(hosts_, ssh_, folder_.path()));
    for (size_t i = 0; i < hosts_.size(); ++i) {
      const absl::StatusOr<ReadyHost>& ready = prepared[i];
      const std::string& name = hosts_[i].name;
      if (ready.ok()) {
        findings_.push_back({FindingLevel::kOk, name, kLoginCheck,
                             absl::StrCat("reached at ", ready->address), ""});
        findings_.push_back({FindingLevel::kOk, name, kProgramCheck, ready->program, ""});
        examined_.push_back({hosts_[i], *ready, needs_[i]});
        continue;
      }
      const bool login = absl::IsUnavailable(ready.status());
      findings_.push_back({FindingLevel::kProblem, name, login ? kLoginCheck : kProgramCheck,
                           std::string(ready.status().message()),
                           login ? "fix the host name, network or ssh key until `ssh HOST true` "
                                   "works without a prompt"
                                 : "see docs/launch.md, What a host needs"});
    }
    return absl::OkStatus();
  }

  absl::Status StartProbes(ProbedHosts& probed) {
    for (const Examined& one : examined_) {
      const std::vector<std::string> argv =
          arguments_.hosts_file.empty()
              ? std::vector<std::string>{executable_, "probe"}
              : SshCommand(ssh_, one.host,
                           absl::StrCat("exec ", Quoted(one.ready.program), " probe"));
      RETURN_IF_ERROR(probed.Add(one.host.name, argv, one.ready.address, one.host.interfaces));
    }
    return absl::OkStatus();
  }

  FactsWanted Wanted() const {
    FactsWanted wanted;
    std::error_code error;
    if (!arguments_.run_dir.empty()) {
      wanted.run_dir = fs::absolute(arguments_.run_dir, error).string();
    } else if (job_.has_value()) {
      wanted.run_dir = fs::absolute("runs", error).string();
    }
    if (job_.has_value() && !job_->data().path().empty()) {
      wanted.text = fs::absolute(job_->data().path(), error).string();
    }
    return wanted;
  }

  absl::Status LookAtHosts(ProbedHosts& probed) {
    Progress("inspecting each host");
    ASSIGN_OR_RETURN(std::vector<HostFacts> facts, probed.ReadFacts(Wanted()));
    for (size_t i = 0; i < facts.size(); ++i) {
      if (job_.has_value()) {
        examined_[i].needs.compute_threads = ComputeThreads(
            *job_, examined_[i].needs, facts[i].cores, arguments_.hosts_file.empty());
      }
      checked_.push_back({examined_[i].host.name, std::move(facts[i]), examined_[i].needs});
    }
    for (Finding& finding : CheckHosts(checked_)) findings_.push_back(std::move(finding));
    return absl::OkStatus();
  }

  absl::Status LookBetweenHosts(ProbedHosts& probed) {
    if (checked_.size() < 2) return absl::OkStatus();
    std::vector<size_t> keepers;  // hosts that use the run folder
    for (size_t i = 0; i < checked_.size(); ++i) {
      if (checked_[i].facts.run.has_value() && checked_[i].needs.keeps_run()) keepers.push_back(i);
    }
    if (keepers.size() > 1 && checked_[keepers[0]].facts.run->error.empty()) {
      const size_t writer = keepers[0];
      keepers.erase(keepers.begin());
      ASSIGN_OR_RETURN(
          std::vector<Finding> shared,
          probed.CheckSharedFolder(writer, checked_[writer].facts.run->there, keepers));
      for (Finding& finding : shared) findings_.push_back(std::move(finding));
    }
    const size_t pairs = checked_.size() * (checked_.size() - 1) / 2;
    const double each = std::clamp(arguments_.seconds / (2.5 * static_cast<double>(pairs)),
                                   kShortestStream_s, kLongestStream_s);
    size_t begun = 0;
    ASSIGN_OR_RETURN(
        ProbedHosts::Links links,
        probed.MeasureLinks(absl::Seconds(each), [&](const auto& from, const auto& to) {
          Progress(
              absl::StrCat("measuring ", from, " <-> ", to, " (", ++begun, " of ", pairs, ")"));
        }));
    for (Finding& finding : links.findings) findings_.push_back(std::move(finding));
    const uint64_t exchanged = job_.has_value() ? ExchangedBytes(*job_) : 0;
    for (Finding& finding : CheckLinks(links.measured, exchanged)) {
      findings_.push_back(std::move(finding));
    }
    return absl::OkStatus();
  }

  absl::Status Show() const {
    std::printf("%s", arguments_.json ? (ToJson(findings_).dump(1) + "\n").c_str()
                                      : FindingsText(findings_).c_str());
    const bool problem =
        std::any_of(findings_.begin(), findings_.end(),
                    [](const Finding& finding) { return finding.level == FindingLevel::kProblem; });
    return problem ? absl::FailedPreconditionError("") : absl::OkStatus();
  }

  static void Progress(const std::string& what) {
    PrintLineToStderr(absl::StrCat("tug doctor: ", what));
  }

  const DoctorArguments& arguments_;
  std::optional<JobConfig> job_;
  std::vector<LaunchHost> hosts_;
  std::vector<HostNeeds> needs_;
  SshOptions ssh_;
  std::string executable_;
  TemporaryFolder folder_;
  std::vector<Examined> examined_;
  std::vector<CheckedHost> checked_;
  std::vector<Finding> findings_;
};

}  // namespace

void AddDoctorCommands(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<DoctorArguments>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Checks hosts before a run: one line per finding, with a remedy");
  command->add_option("JOB", arguments->job_file, "Job file of the job to run there");
  command
      ->add_option("--set", arguments->overrides,
                   "Override a field of the job file: path.to.field=value; may be given many times")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--hosts", arguments->hosts_file,
                   "Hosts file of `tug launch`; default: this machine only")
      ->type_name("FILE");
  arguments->ssh.AddTo(*command);
  command
      ->add_option("--run-dir", arguments->run_dir,
                   "Run folder of the job [runs, if a job is given]")
      ->type_name("DIR");
  command
      ->add_option(
          "--seconds", arguments->seconds,
          "Approximate seconds for all links together; a stream takes 0.05 s to 1 s each way")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Findings as JSON");
  command->footer(
      "Exit code 1 if there is a problem.\n"
      "Examples:\n"
      "  tug doctor\n"
      "  tug doctor job.textproto --hosts hosts.txt --run-dir /shared/runs/a");
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return Examination(*arguments).Run(); }; });
  CLI::App* probe =
      app.add_subcommand("probe", "Internal: the probe that `tug doctor` starts on a host");
  probe->group("");
  probe->callback([&chosen] { chosen = RunProbe; });
}

}  // namespace tug
