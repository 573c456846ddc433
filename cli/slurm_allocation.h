#ifndef TUG_CLI_SLURM_ALLOCATION_H_
#define TUG_CLI_SLURM_ALLOCATION_H_

// The nodes that Slurm has given us, as its variables tell (sbatch(1), OUTPUT ENVIRONMENT
// VARIABLES). Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/environment.h"

namespace tug {

struct SlurmAllocation {
  std::string nodes;            // SLURM_JOB_NODELIST, "gpu[01-03],login"
  std::vector<uint32_t> tasks;  // by node, each at least 1
  uint32_t restarts = 0;        // how many times the job was put back into the queue
};

// Errors: FAILED_PRECONDITION: we are in none; INVALID_ARGUMENT: what is there is not understood.
absl::StatusOr<SlurmAllocation> SlurmAllocationOf(const Environment& environment);

// "2(x3),1" as {2, 2, 2, 1}. Errors: INVALID_ARGUMENT.
absl::StatusOr<std::vector<uint32_t>> ParseTasksPerNode(const std::string& text);

}  // namespace tug

#endif  // TUG_CLI_SLURM_ALLOCATION_H_
