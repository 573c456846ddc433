// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_HOSTS_SLURM_HOSTS_H_
#define TUG_LAUNCH_HOSTS_SLURM_HOSTS_H_

// Hosts of a Slurm allocation: each daemon is a step of our job (srun); with ssh it is a connection
// (launch/hosts/ssh_hosts.h).

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/hosts/hosts_file.h"
#include "launch/hosts/slurm_allocation.h"
#include "launch/hosts/ssh_hosts.h"

namespace tug {

struct SlurmOptions {
  std::string program;     // path of tug, the same on all nodes
  bool bind_cores = true;  // srun supports --cpu-bind; otherwise the cluster binds no process
};

// Nodes of an allocation as hosts that take any role, and one process per task. Runs `scontrol`.
// `folder`: for temporary files. Errors: FAILED_PRECONDITION (scontrol failed, with its message),
// UNAVAILABLE (timeout), CANCELLED. REQUIRES: the process has one thread.
absl::StatusOr<std::vector<LaunchHost>> HostsOfAllocation(const SlurmAllocation& allocation,
                                                          const std::string& folder);

// argv that runs a program on a node next to other steps, with all cores, memory and devices that
// the job has there (steps share them: --overlap).
std::vector<std::string> SrunCommand(const SlurmOptions& options, const LaunchHost& host,
                                     const std::vector<std::string>& argv);

// Checks on all nodes, in one step, that the program exists and has this version, and finds the
// address by which others reach the node: the source address of packets to this host. Sets
// options.bind_cores. `folder`: for temporary files. Errors, one line: UNAVAILABLE (srun failed),
// FAILED_PRECONDITION (no such program, or another version; names the node); CANCELLED. REQUIRES:
// the process has one thread.
absl::StatusOr<std::vector<ReadyHost>> PrepareNodes(const std::vector<LaunchHost>& hosts,
                                                    const std::string& folder,
                                                    SlurmOptions& options);

// Output of `tug attend --tell` on a node: "tug-node NAME\tADDRESS\tVERSION". Errors: not started
// by srun.
absl::StatusOr<std::string> DescribeNode();

}  // namespace tug

#endif  // TUG_LAUNCH_HOSTS_SLURM_HOSTS_H_
