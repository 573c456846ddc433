// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor_needs.h"

#include <algorithm>
#include <optional>

#include "CLI/CLI.hpp"
#include "base/cpu/cpu_budget.h"
#include "base/status_macros.h"
#include "config/placement_mode.h"
#include "launch/job_memory.h"

namespace tug {
namespace {

// Open files of a process without connections, and per connection: libzmq, gRPC, files.
constexpr uint64_t kOwnFiles = 256;
constexpr uint64_t kFilesOfConnection = 8;
constexpr uint64_t kStatesOfWeight = 3;  // in a checkpoint: weights, m and v

}  // namespace

absl::StatusOr<std::vector<HostNeeds>> NeedsOf(const JobConfig& job,
                                               const std::vector<LaunchHost>& hosts) {
  const ClusterConfig& cluster = job.cluster();
  ASSIGN_OR_RETURN(
      const DealtProcesses dealt,
      DealProcesses(hosts, {.servers = cluster.servers() + cluster.spare_servers(),
                            .workers = cluster.workers(),
                            .servers_beside_workers = StartsServersBesideWorkers(job)}));
  std::vector<HostNeeds> needs(hosts.size());
  needs[dealt.coordinator].coordinates = true;
  for (const size_t host : dealt.servers) ++needs[host].servers;
  for (const size_t host : dealt.workers) ++needs[host].workers;
  const std::optional<JobMemory> memory = GuessJobMemory(job);
  const uint64_t lanes = uint64_t{cluster.servers()} * cluster.lanes_per_server();
  for (HostNeeds& host : needs) {
    host.has_job = true;
    host.wants_gpu = job.device() == ClusterConfig::CUDA && host.workers > 0;
    host.open_files = kOwnFiles + kFilesOfConnection * (cluster.workers() + lanes);
    if (!memory.has_value()) continue;
    host.memory_bytes =
        (host.coordinates ? kCoordinatorBytes : 0) +
        static_cast<uint64_t>(host.servers) * (memory->server_bytes + memory->checkpoint_bytes) +
        static_cast<uint64_t>(host.workers) * memory->worker_bytes;
    const uint64_t kept = job.checkpoint().keep() + (job.checkpoint().keep_best() ? 1 : 0);
    host.disk_bytes = (kept + 1) * kStatesOfWeight * memory->weight_bytes;
  }
  return needs;
}

int ComputeThreads(const JobConfig& job, const HostNeeds& needs, int cores, bool local) {
  const int lanes = static_cast<int>(job.cluster().lanes_per_server());
  const auto by_default = [&] {
    if (!local) return DefaultComputeThreads(cores / std::max(needs.workers, 1), {.workers = 1});
    return DefaultComputeThreads(
        cores, {.servers = needs.servers, .lanes_per_server = lanes, .workers = needs.workers});
  };
  const int set = static_cast<int>(job.cluster().compute_threads());
  return needs.workers * (set > 0 ? set : by_default());
}

uint64_t ExchangedBytes(const JobConfig& job) {
  if (job.comm().has_push_codec()) return 0;
  const std::optional<JobMemory> memory = GuessJobMemory(job);
  return memory.has_value() ? memory->carried * memory->weight_bytes : 0;
}

}  // namespace tug
