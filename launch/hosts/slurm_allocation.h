// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_HOSTS_SLURM_ALLOCATION_H_
#define TUG_LAUNCH_HOSTS_SLURM_ALLOCATION_H_

// Nodes that Slurm has allocated to this job, from its environment variables (sbatch(1), OUTPUT
// ENVIRONMENT VARIABLES). Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "process/environment.h"

namespace tug {

struct SlurmAllocation {
  std::string nodes;            // SLURM_JOB_NODELIST, "gpu[01-03],login"
  std::vector<uint32_t> tasks;  // per node, each at least 1
  uint32_t restarts = 0;        // times that Slurm requeued the job
};

// Errors: FAILED_PRECONDITION: not inside an allocation; INVALID_ARGUMENT: cannot parse the
// variables.
absl::StatusOr<SlurmAllocation> SlurmAllocationOf(const Environment& environment);

// "2(x3),1" becomes {2, 2, 2, 1}. Errors: INVALID_ARGUMENT.
absl::StatusOr<std::vector<uint32_t>> ParseTasksPerNode(const std::string& text);

}  // namespace tug

#endif  // TUG_LAUNCH_HOSTS_SLURM_ALLOCATION_H_
