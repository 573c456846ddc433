// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_RANK_ENVIRONMENT_H_
#define TUG_LAUNCH_RANK_ENVIRONMENT_H_

// Variables that other launchers (torchrun, wrappers of mpirun and srun, indexed jobs of
// Kubernetes) set for the processes they start: MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE,
// LOCAL_RANK, LOCAL_WORLD_SIZE. Pure. Flags take precedence: then their variables are not read.
//
// Errors are INVALID_ARGUMENT, one line that names the variable and the remedy.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "process/environment.h"

namespace tug {

// Index of a process, from 0, and the number of processes.
struct RankOf {
  uint32_t rank = 0;
  uint32_t of = 1;  // more than `rank`
};

// Address where the coordinator listens, "MASTER_ADDR:MASTER_PORT"; empty if both are unset.
// Errors: one of them is missing; an IPv6 address, or characters that no host name has; an invalid
// port.
absl::StatusOr<std::string> CoordinatorAddressOf(const Environment& environment);

// Coordinator to join: the value of --coordinator, else CoordinatorAddressOf. Errors: as there;
// neither is given.
absl::StatusOr<std::string> CoordinatorToJoin(const std::string& flag,
                                              const Environment& environment);

// Rank of a worker process, as set by a launcher.
struct WorkerRank {
  std::optional<RankOf> in_job;   // RANK, WORLD_SIZE
  std::optional<RankOf> on_host;  // LOCAL_RANK, LOCAL_WORLD_SIZE
};

// Ranks to read. kInJob: flags give the rank on the host.
enum class RanksRead { kAll, kInJob };

// Errors: one variable of a pair is missing; not a whole number; a rank that is not below its size,
// or more processes on a host than in the job.
absl::StatusOr<WorkerRank> WorkerRankOf(const Environment& environment,
                                        RanksRead read = RanksRead::kAll);

// Removes these variables from this process's environment. For processes started by tug's
// launchers: flags give their ranks, and variables that another launcher set for tug itself
// describe other processes. Not pure, not thread-safe.
void ForgetRanks();

}  // namespace tug

#endif  // TUG_LAUNCH_RANK_ENVIRONMENT_H_
