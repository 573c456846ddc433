#ifndef TUG_CLI_LOCAL_BUDGET_H_
#define TUG_CLI_LOCAL_BUDGET_H_

// How the processes of a local job share the cores that this one may use (base/cpu_budget.h).

#include <string>

#include "cli/local_job.h"
#include "proto/job.pb.h"

namespace tug {

// Gives each process its cores where threads are pinned; otherwise, and for what is not set, adds
// overrides to the job: cluster.pin_threads, cluster.compute_threads.
void FitToThisMachine(const ClusterConfig& cluster, LocalJob& job);

// "2 cores: 1 lane a server, 1 compute thread a worker, not pinned (5 busy threads)".
std::string LocalPlanText(const ClusterConfig& cluster);

}  // namespace tug

#endif  // TUG_CLI_LOCAL_BUDGET_H_
