// SPDX-License-Identifier: Apache-2.0
#include "launch/local_budget.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tug {
namespace {

HostLoad LoadOf(const CpuBudget& host, const ClusterConfig& cluster) {
  HostLoad load;
  load.servers = static_cast<int>(cluster.servers());
  load.lanes_per_server = static_cast<int>(cluster.lanes_per_server());
  load.workers = static_cast<int>(cluster.workers());
  load.compute_threads = cluster.compute_threads() > 0 ? static_cast<int>(cluster.compute_threads())
                                                       : DefaultComputeThreads(host.usable, load);
  return load;
}

}  // namespace

void FitToMachine(const CpuBudget& host, const ClusterConfig& cluster, LocalJob& job) {
  const HostLoad load = LoadOf(host, cluster);
  if (cluster.compute_threads() == 0) {
    job.overrides.push_back(absl::StrCat("cluster.compute_threads=", load.compute_threads));
  }
  if (!cluster.pin_threads()) return;
  HostPlan plan = DivideHost(host, load);
  // A process sees only its own threads and might find enough cores for them.
  if (!plan.may_pin) job.overrides.push_back("cluster.pin_threads=false");
  job.server_cores = std::move(plan.servers);
  job.worker_cores = std::move(plan.workers);
}

std::string LocalPlanText(const CpuBudget& host, const ClusterConfig& cluster) {
  return PlanText(host, LoadOf(host, cluster), cluster.pin_threads());
}

}  // namespace tug
