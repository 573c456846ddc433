// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/run/experiment_place.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/files/file.h"
#include "base/files/shell_word.h"
#include "base/status_macros.h"
#include "config/placement_mode.h"
#include "lab/experiment/measures/link_plan.h"
#include "lab/experiment/run/experiment_job.h"
#include "launch/launcher.h"
#include "process/job_arguments.h"

namespace tug {
namespace {

// Arguments of `tug` for a job that `tug launch` runs.
std::vector<std::string> LaunchArguments(const PlacedJob& job) {
  std::vector<std::string> words = {"launch", job.job_file};
  if (job.place.has_hosts()) {
    words.insert(words.end(), {"--hosts", job.place.hosts().file()});
    if (!job.place.hosts().ssh().empty()) {
      words.insert(words.end(), {"--ssh", job.place.hosts().ssh()});
    }
  } else {
    words.push_back("--slurm");
  }
  return words;
}

// Runs `tug launch` as a child process, which contains the supervisor.
absl::Status RunLaunch(const PlacedJob& job) {
  Program program{.name = "tug launch"};
  ASSIGN_OR_RETURN(program.argv.emplace_back(), OwnExecutable());
  for (const auto& words : {LaunchArguments(job), SetWords(job.overrides)}) {
    program.argv.insert(program.argv.end(), words.begin(), words.end());
  }
  const std::string run_dir = absl::StrCat(job.out, "/", job.name);
  program.argv.insert(program.argv.end(), {"--run-dir", run_dir});
  program.log_path = run_dir + ".log";
  Launcher launcher;
  RETURN_IF_ERROR(launcher.Start(program).status());
  bool interrupted = false;
  for (;;) {
    const LaunchEvent event = launcher.Wait(absl::InfiniteFuture());
    if (event.interrupted) {
      interrupted = true;
      launcher.Signal(program.name, SIGINT);
    }
    if (!event.ended.has_value()) continue;
    if (interrupted) return absl::CancelledError(absl::StrCat(job.name, ": interrupted"));
    if (event.ended->exited_with_zero()) break;
    return absl::AbortedError(absl::StrCat(job.name, ": tug launch ", event.ended->How(), ": ",
                                           LastWords(program.log_path)));
  }
  std::error_code error;
  std::filesystem::remove_all(run_dir + "/checkpoints", error);  // the models are not needed
  return absl::OkStatus();
}

}  // namespace

uint32_t TestbedHostsOf(const Place& place, const JobConfig& config) {
  if (!HasLinks(place)) return 0;
  if (place.testbed().hosts() > 0) return place.testbed().hosts();
  const uint32_t servers = config.cluster().servers(), workers = config.cluster().workers();
  return StartsServersBesideWorkers(config) ? std::max(servers, workers) : servers + workers;
}

std::string CommandOf(const PlacedJob& job, const std::vector<std::string>& experiment) {
  std::vector<std::string> words = {"tug", "train", job.job_file};
  if (!job.place.has_local() && !job.place.has_testbed()) {
    words = LaunchArguments(job);
    words.insert(words.begin(), "tug");
  }
  const std::vector<std::string> settings = SetWords(job.overrides);
  words.insert(words.end(), settings.begin(), settings.end());
  if (HasLinks(job.place)) words = experiment;
  return ShellCommand(words);
}

absl::Status ExperimentPlaces::Check(const Place& place) {
  if (HasLinks(place)) {
    if (geteuid() != 0) {
      return absl::FailedPreconditionError(
          "place.testbed needs root, to make hosts on this machine: run it with sudo, with "
          "place.testbed.loopback=true, or only cases without it (--case)");
    }
    return PrepareTestbed(place.testbed().link());
  }
  if (place.has_slurm() && std::getenv("SLURM_JOB_ID") == nullptr) {
    return absl::FailedPreconditionError(
        "place.slurm needs a Slurm allocation: run the experiment inside salloc or sbatch");
  }
  if (place.has_hosts()) return OpenForReading(place.hosts().file()).status();
  return absl::OkStatus();
}

absl::Status ExperimentPlaces::PrepareTestbed(const std::string& link) {
  if (testbed_ != nullptr && link == link_) return absl::OkStatus();
  testbed_.reset();
  ASSIGN_OR_RETURN(testbed_, Testbed::Up(testbed_hosts_, link));
  link_ = link;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<LinkTraffic>> ExperimentPlaces::Run(const PlacedJob& job) {
  std::vector<LinkTraffic> links;
  if (job.place.has_hosts() || job.place.has_slurm()) {
    RETURN_IF_ERROR(RunLaunch(job));
    return links;
  }
  ExperimentJob one = {.name = job.name,
                       .job_file = job.job_file,
                       .overrides = job.overrides,
                       .workers = job.config.cluster().workers(),
                       .servers = job.config.cluster().servers(),
                       .hosts = TestbedHostsOf(job.place, job.config)};
  if (one.hosts == 0) {
    RETURN_IF_ERROR(RunExperimentJob(one, job.out, nullptr));
    return links;
  }
  RETURN_IF_ERROR(PrepareTestbed(job.place.testbed().link()));
  ASSIGN_OR_RETURN(const std::vector<LinkBytes> before, testbed_->ReadLinkBytes());
  RETURN_IF_ERROR(RunExperimentJob(one, job.out, testbed_.get()));
  ASSIGN_OR_RETURN(const std::vector<LinkBytes> after, testbed_->ReadLinkBytes());
  for (uint32_t host = 0; host < one.hosts; ++host) {
    links.push_back({.sent_bytes = after[host].sent - before[host].sent,
                     .received_bytes = after[host].received - before[host].received});
  }
  return links;
}

}  // namespace tug
