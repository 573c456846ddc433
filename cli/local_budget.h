#ifndef TUG_CLI_LOCAL_BUDGET_H_
#define TUG_CLI_LOCAL_BUDGET_H_

// How the processes of a local job share a machine (base/cpu_budget.h). `host`: what `tug train`
// itself may use.

#include <string>

#include "base/cpu_budget.h"
#include "cli/local_job.h"
#include "proto/job.pb.h"

namespace tug {

// Gives each process its cores where threads get cores of their own. Adds to the job's overrides
// cluster.compute_threads where it is not set, and cluster.pin_threads=false where the machine has
// fewer cores than the job busy threads.
void FitToMachine(const CpuBudget& host, const ClusterConfig& cluster, LocalJob& job);

// "2 cores: 1 lane a server, 1 compute thread a worker, not pinned (5 busy threads)".
std::string LocalPlanText(const CpuBudget& host, const ClusterConfig& cluster);

}  // namespace tug

#endif  // TUG_CLI_LOCAL_BUDGET_H_
