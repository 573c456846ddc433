#ifndef TUG_CLI_SLURM_HOSTS_H_
#define TUG_CLI_SLURM_HOSTS_H_

// Hosts that Slurm has given us: each daemon is a step of our job (srun), as it is a connection of
// ssh elsewhere (cli/ssh_hosts.h).

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/hosts_file.h"
#include "cli/slurm_allocation.h"
#include "cli/ssh_hosts.h"

namespace tug {

struct SlurmOptions {
  std::string program;     // path of tug on all nodes
  bool bind_cores = true;  // srun may be told not to bind; else the cluster binds nobody
};

// The nodes of an allocation, as hosts that take any role and as many processes as they have tasks.
// Asks `scontrol`. `folder`: for files that are needed meanwhile. Errors: FAILED_PRECONDITION, what
// it said. REQUIRES: the process has one thread.
absl::StatusOr<std::vector<LaunchHost>> HostsOfAllocation(const SlurmAllocation& allocation,
                                                          const std::string& folder);

// argv that runs a program on a node, with all cores, memory and devices that the job has there
// (steps share them: --overlap), beside other steps.
std::vector<std::string> SrunCommand(const SlurmOptions& options, const LaunchHost& host,
                                     const std::vector<std::string>& argv);

// Looks at all nodes, in one step, whether the program is there and of this very version, and by
// which address others reach them: that from which packets to us leave. Sets options.bind_cores.
// `folder`: the same. Errors, one line: UNAVAILABLE (srun failed), FAILED_PRECONDITION (no such
// program, or another version; the node is named); CANCELLED. REQUIRES: the process has one thread.
absl::StatusOr<std::vector<ReadyHost>> PrepareNodes(const std::vector<LaunchHost>& hosts,
                                                    const std::string& folder,
                                                    SlurmOptions& options);

// What `tug attend --tell` says on a node: "tug-node NAME\tADDRESS\tVERSION". Errors: it was not
// started by srun.
absl::StatusOr<std::string> TellNode();

}  // namespace tug

#endif  // TUG_CLI_SLURM_HOSTS_H_
