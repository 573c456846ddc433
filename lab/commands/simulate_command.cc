// SPDX-License-Identifier: Apache-2.0
// tug simulate: predicts a job's steps on hypothetical machines. `tug simulate faults` is in
// lab/commands/simulate_faults.cc.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/files/text_file.h"
#include "base/status_macros.h"
#include "cli/lab_program.h"
#include "config/job_config.h"
#include "config/text_proto.h"
#include "coordinator/service/replay_setup.h"
#include "lab/commands/simulate_faults.h"
#include "lab/lab_commands.h"
#include "model/replay/replay_profile.h"
#include "plan/link_rate.h"
#include "prediction/policy_note.h"
#include "prediction/scheduling.h"
#include "process/policy_names.h"
#include "process/standard_streams.h"

namespace tug {
namespace {

constexpr uint32_t kMaxWorkers = 4096;
constexpr uint32_t kMaxServers = 1024;
constexpr double kMaxChunks = 2e10;          // per prediction: about an hour
constexpr double kMaxExplainedChunks = 5e7;  // per prediction: a loss is explained by several

struct SchedulingArguments {
  std::string job_file;
  std::vector<std::string> overrides;
  std::vector<uint32_t> workers;  // empty: the job's
  std::vector<uint32_t> servers;
  std::vector<std::string> policies = {"fifo", "priority", "bytescheduler"};
  std::string link = "1gbit";
  double latency_us = TestbedHosts(0).latency_seconds * 1e6;
  double queue_ms = TestbedHosts(0).queue_seconds * 1e3;
  double lane_rate = 0;  // GB/s
};

struct ClusterSize {
  uint32_t workers = 1;
  uint32_t servers = 1;
};

absl::StatusOr<CommConfig::Scheduler> ParseFixedPolicy(const std::string& name) {
  ASSIGN_OR_RETURN(const CommConfig::Scheduler scheduler, ParsePolicy(name));
  if (scheduler != CommConfig::AUTO) return scheduler;
  return absl::InvalidArgumentError(
      absl::StrCat("--policies ", name,
                   " cannot be simulated, since it tunes on real steps; use bytescheduler with "
                   "comm.partition_bytes and comm.credit_bytes"));
}

absl::Status CheckRange(const char* option, const std::vector<uint32_t>& values, uint32_t most) {
  for (const uint32_t value : values) {
    if (value < 1 || value > most) {
      return absl::InvalidArgumentError(absl::StrCat(option, " ", value, ": from 1 to ", most));
    }
  }
  return absl::OkStatus();
}

// Pairs the two lists; a single value is paired with every value of the other list.
absl::StatusOr<std::vector<ClusterSize>> SizesOf(const SchedulingArguments& a,
                                                 const ClusterConfig& job) {
  RETURN_IF_ERROR(CheckRange("--workers", a.workers, kMaxWorkers));
  RETURN_IF_ERROR(CheckRange("--servers", a.servers, kMaxServers));
  std::vector<uint32_t> workers = a.workers;
  std::vector<uint32_t> servers = a.servers;
  if (workers.empty()) workers = {job.workers()};
  if (servers.empty()) servers = {job.servers()};
  const size_t count = std::max(workers.size(), servers.size());
  if (workers.size() == 1) workers.resize(count, workers.front());
  if (servers.size() == 1) servers.resize(count, servers.front());
  if (workers.size() != servers.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--workers has ", workers.size(),
                                                   " values and --servers ", servers.size(),
                                                   ": pass the same number of values, or one"));
  }
  std::vector<ClusterSize> sizes;
  for (size_t i = 0; i < count; ++i) sizes.push_back({workers[i], servers[i]});
  return sizes;
}

// The job on a cluster of another size; the number of virtual workers per worker stays.
JobConfig Resized(JobConfig job, ClusterSize size) {
  ClusterConfig& cluster = *job.mutable_cluster();
  const uint32_t each = (cluster.virtual_workers() + cluster.workers() - 1) / cluster.workers();
  if (size.workers != cluster.workers()) cluster.set_virtual_workers(each * size.workers);
  cluster.set_workers(size.workers);
  cluster.set_servers(size.servers);
  return job;
}

// Refuses a simulation that would take very long before it starts.
absl::Status CheckCost(const JobConfig& job, const SimulatedHosts& hosts) {
  ASSIGN_OR_RETURN(const double chunks, SimulatedChunks(job, hosts));
  if (chunks <= kMaxChunks) return absl::OkStatus();
  const ClusterConfig& cluster = job.cluster();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%d workers and %d servers would take hours to simulate: %.1g chunks of messages, above the "
      "limit of %.1g; set a larger comm.partition_bytes or a smaller replay.size_scale",
      cluster.workers(), cluster.servers(), chunks, kMaxChunks));
}

// A job on a cluster of one size, and the lower bound of any schedule.
struct SizedJob {
  JobConfig job;
  SchedulingPrediction bound;
};

absl::StatusOr<std::vector<SizedJob>> SizedJobs(const SchedulingArguments& a, const JobConfig& job,
                                                const SimulatedHosts& hosts) {
  ASSIGN_OR_RETURN(const std::vector<ClusterSize> sizes, SizesOf(a, job.cluster()));
  std::vector<SizedJob> jobs;
  for (const ClusterSize size : sizes) {
    SizedJob sized{.job = Resized(job, size)};
    RETURN_IF_ERROR(CheckCost(sized.job, hosts));
    ASSIGN_OR_RETURN(sized.bound, FluidBound(sized.job, hosts.link_bytes_per_second));
    jobs.push_back(std::move(sized));
  }
  return jobs;
}

// The steps of a job under each policy, in the order of --policies.
using PolicySteps = std::vector<SchedulingPrediction>;

// Prints each row when it is computed.
absl::StatusOr<PolicySteps> PrintPredictions(const SchedulingArguments& a, const SizedJob& sized,
                                             const SimulatedHosts& hosts) {
  const double bound = sized.bound.step_seconds;
  std::printf("%7u  %7u  %-13s  %10.1f  %10.1f\n", sized.job.cluster().workers(),
              sized.job.cluster().servers(), "bound", bound * 1e3,
              sized.bound.exposed_seconds * 1e3);
  RETURN_IF_ERROR(FlushResults());
  PolicySteps steps;
  for (const std::string& policy : a.policies) {
    JobConfig job = sized.job;
    ASSIGN_OR_RETURN(const CommConfig::Scheduler scheduler, ParseFixedPolicy(policy));
    job.mutable_comm()->set_scheduler(scheduler);
    ASSIGN_OR_RETURN(SchedulingPrediction step, PredictScheduling(job, hosts));
    steps.push_back(std::move(step));
    const double seconds = steps.back().step_seconds;
    std::printf("%7s  %7s  %-13s  %10.1f  %10.1f  %7.2f  %8.2f\n", "", "", policy.c_str(),
                seconds * 1e3, steps.back().exposed_seconds * 1e3, seconds / bound,
                steps.front().step_seconds / seconds);
    RETURN_IF_ERROR(FlushResults());
  }
  return steps;
}

// Why policy `index` is slower than the first.
absl::StatusOr<std::string> LossNote(const SchedulingArguments& a, const SizedJob& sized,
                                     const SimulatedHosts& hosts, const PolicySteps& steps,
                                     size_t index) {
  PolicyLoss loss{.policy = a.policies[index],
                  .other = a.policies.front(),
                  .seconds = steps[index].step_seconds,
                  .other_seconds = steps.front().step_seconds};
  ASSIGN_OR_RETURN(const double chunks, SimulatedChunks(sized.job, hosts));
  if (chunks > kMaxExplainedChunks) {
    return absl::StrCat(loss.policy, " is slower than ", loss.other,
                        "; simulating the possible causes would take too long");
  }
  ASSIGN_OR_RETURN(const CommConfig::Scheduler policy, ParseFixedPolicy(loss.policy));
  ASSIGN_OR_RETURN(const CommConfig::Scheduler other, ParseFixedPolicy(loss.other));
  ASSIGN_OR_RETURN(loss.without, RemoveCauses(sized.job, hosts, policy, other));
  return WhyItLoses(loss);
}

// Appends why policies are slower than the first, or why none is faster.
absl::Status AppendNotes(const SchedulingArguments& a, const SizedJob& sized,
                         const SimulatedHosts& hosts, const PolicySteps& steps,
                         std::vector<std::string>& notes) {
  const ClusterConfig& cluster = sized.job.cluster();
  const std::string at =
      absl::StrCat(cluster.workers(), " workers, ", cluster.servers(), " servers: ");
  const SchedulingPrediction& first = steps.front();
  bool equal = true;
  for (size_t i = 1; i < steps.size(); ++i) {
    const double ratio = steps[i].step_seconds / first.step_seconds;
    equal = equal && std::abs(ratio - 1) <= kEqualSteps;
    if (ratio <= 1 + kEqualSteps) continue;
    ASSIGN_OR_RETURN(const std::string note, LossNote(a, sized, hosts, steps, i));
    notes.push_back(absl::StrCat(at, note));
  }
  if (equal && steps.size() > 1) {
    notes.push_back(absl::StrCat(at, WhyNoneGains(a.policies.front(), first, sized.bound)));
  }
  return absl::OkStatus();
}

// Loads the job with its profile. Its servers are other machines, so the default of lanes must not
// depend on this machine's cores.
absl::StatusOr<JobConfig> LoadReplayJob(const SchedulingArguments& a) {
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(a.job_file, kJobFileLimitBytes));
  JobConfig written;
  RETURN_IF_ERROR(ParseTextProto(text, a.job_file, written));
  std::vector<std::string> overrides = a.overrides;
  for (const std::string& set : a.overrides) RETURN_IF_ERROR(ApplyOverride(written, set));
  if (!written.cluster().has_lanes_per_server()) overrides.push_back("cluster.lanes_per_server=1");
  ASSIGN_OR_RETURN(JobConfig job, ParseJobConfig(text, a.job_file, overrides));
  if (job.compute() != JobConfig::REPLAY) {
    return absl::InvalidArgumentError(absl::StrCat(
        a.job_file, " computes a model, but only a replay can be simulated (compute: REPLAY)"));
  }
  const ImpairConfig& impair = job.comm().impair();
  if (impair.delay_ms() > 0 || impair.jitter_ms() > 0 || impair.loss() > 0 ||
      impair.rate_mbit() > 0) {
    return absl::InvalidArgumentError(
        "comm.impair is not simulated: remove it, and use --link and --latency-us instead");
  }
  RETURN_IF_ERROR(ResolveReplay(job));
  return job;
}

absl::Status SimulateScheduling(const SchedulingArguments& a) {
  for (const std::string& policy : a.policies) RETURN_IF_ERROR(ParseFixedPolicy(policy).status());
  ASSIGN_OR_RETURN(const double bits_per_second, ParseLinkRate(a.link));
  ASSIGN_OR_RETURN(const JobConfig job, LoadReplayJob(a));
  SimulatedHosts hosts = TestbedHosts(PayloadBytesPerSecond(bits_per_second));
  hosts.latency_seconds = a.latency_us * 1e-6;
  hosts.queue_seconds = a.queue_ms * 1e-3;
  hosts.server_bytes_per_second = a.lane_rate * 1e9;
  ASSIGN_OR_RETURN(const std::vector<SizedJob> jobs, SizedJobs(a, job, hosts));
  std::printf("%s\n", ReplayText(job.replay()).c_str());
  std::printf(
      "simulated, one worker or server per host: links of %s carry %.2f MB/s of payload each way\n"
      "lanes per server: %u; fitted to deploy/testbed, for any link: a message costs %g us of a "
      "worker's or lane's time, streams get 1/%g to %g of their even share\n\n",
      a.link.c_str(), hosts.link_bytes_per_second * 1e-6, job.cluster().lanes_per_server(),
      hosts.message_seconds * 1e6, hosts.unevenness, hosts.unevenness);
  std::printf("%7s  %7s  %-13s  %10s  %10s  %7s  %8s\n", "workers", "servers", "policy", "step, ms",
              "exposed", "x bound", "speed-up");
  std::vector<PolicySteps> steps;
  for (const SizedJob& sized : jobs) {
    ASSIGN_OR_RETURN(PolicySteps of_job, PrintPredictions(a, sized, hosts));
    steps.push_back(std::move(of_job));
  }
  std::vector<std::string> notes;
  for (size_t i = 0; i < jobs.size(); ++i) {
    RETURN_IF_ERROR(AppendNotes(a, jobs[i], hosts, steps[i], notes));
  }
  if (!notes.empty()) std::printf("\n%s\n", absl::StrJoin(notes, "\n").c_str());
  return absl::OkStatus();
}

void AddSimulateScheduling(CLI::App& simulate, Command& chosen) {
  auto a = std::make_shared<SchedulingArguments>();
  CLI::App* command = simulate.add_subcommand("scheduling",
                                              "Predicts the step time of a replay under each "
                                              "policy, next to the lower bound of all policies");
  command->add_option("JOB", a->job_file, "Job file with compute: REPLAY (see tug help job)")
      ->required();
  command
      ->add_option("--set", a->overrides,
                   "Override a field of the job file: path.to.field=value; may be given many times")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--workers", a->workers,
                   "Numbers of workers, 1 to 4096; each runs as many virtual workers as in the job "
                   "[the job's number of workers]")
      ->delimiter(',');
  command
      ->add_option("--servers", a->servers,
                   "Numbers of servers, 1 to 1024: one, or one per number of --workers [the job's]")
      ->delimiter(',');
  command->add_option("--link", a->link, "Rate of every host's link each way, in tc's notation")
      ->type_name("RATE")
      ->capture_default_str();
  command
      ->add_option(
          "--policies", a->policies,
          "Policies: fifo (wfbp), priority, bytescheduler; speed-up is relative to the first")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--latency-us", a->latency_us,
                   "Latency of a message, in addition to its transmission")
      ->capture_default_str();
  command
      ->add_option("--queue-ms", a->queue_ms,
                   "Queue of a link, as transmission time; when it is full, senders wait")
      ->capture_default_str();
  command
      ->add_option("--lane-rate", a->lane_rate,
                   "FP32 gradients that a lane sums and updates, GB/s; 0: without delay")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  tug simulate scheduling deploy/jobs/replay_vgg16.textproto --set replay.time_scale=1 "
      "--link 1gbit\n"
      "  tug simulate scheduling deploy/jobs/replay_vgg16.textproto --workers 4,16,64 --servers "
      "2,8,32 --link 10gbit\n"
      "  tug simulate scheduling deploy/jobs/replay_vgg16.textproto --set replay.size_scale=1 "
      "--set "
      "replay.time_scale=1 --workers 512 --servers 128 --link 10gbit");
  command->callback([a, &chosen] { chosen = [a] { return SimulateScheduling(*a); }; });
}

}  // namespace

void AddSimulateCommand(CLI::App& app, Command& chosen) {
  CLI::App* simulate = app.add_subcommand(kSimulateCommand.name, kSimulateCommand.summary);
  simulate->require_subcommand(1);
  simulate->footer(
      "Examples:\n"
      "  tug simulate scheduling deploy/jobs/replay_vgg16.textproto --set replay.time_scale=1 "
      "--link 1gbit\n"
      "  tug simulate faults --runs 1000\n"
      "Each has its own --help.");
  AddSimulateScheduling(*simulate, chosen);
  AddSimulateFaults(*simulate, chosen);
}

}  // namespace tug
