// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_LOCAL_BUDGET_H_
#define TUG_LAUNCH_LOCAL_BUDGET_H_

// Division of a machine among the processes of a local job (base/cpu/cpu_budget.h). `host`: what
// `tug train` itself may use.

#include <string>

#include "base/cpu/cpu_budget.h"
#include "launch/local_job.h"
#include "proto/job.pb.h"

namespace tug {

// Assigns cores to each process if threads are pinned. Adds overrides to the job:
// cluster.compute_threads if it is not set, and cluster.pin_threads=false if the machine has fewer
// cores than the job has busy threads.
void FitToMachine(const CpuBudget& host, const ClusterConfig& cluster, LocalJob& job);

// "2 cores: 1 lane per server, 1 compute thread per worker, not pinned (5 busy threads)".
std::string LocalPlanText(const CpuBudget& host, const ClusterConfig& cluster);

}  // namespace tug

#endif  // TUG_LAUNCH_LOCAL_BUDGET_H_
