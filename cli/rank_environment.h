#ifndef TUG_CLI_RANK_ENVIRONMENT_H_
#define TUG_CLI_RANK_ENVIRONMENT_H_

// What launchers of other systems (torchrun, wrappers of mpirun and srun, indexed jobs of
// Kubernetes) tell the processes that they start: MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE,
// LOCAL_RANK, LOCAL_WORLD_SIZE. Pure. What a flag says wins over it: then its variables are not
// read.
//
// Errors are INVALID_ARGUMENT, one line that names the variable and says what to do.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/environment.h"

namespace tug {

// A process among so many, from 0 on.
struct RankOf {
  uint32_t rank = 0;
  uint32_t of = 1;  // more than `rank`
};

// "MASTER_ADDR:MASTER_PORT", where the coordinator listens; empty if neither is there. Errors: one
// of them is missing; an address of IPv6, or one that has what no name has; a port that is none.
absl::StatusOr<std::string> CoordinatorAddressOf(const Environment& environment);

// Whom to join: what --coordinator says, or else CoordinatorAddressOf. Errors: the same; neither
// says anything.
absl::StatusOr<std::string> CoordinatorToJoin(const std::string& flag,
                                              const Environment& environment);

// Which worker of a job a process is, as it is told.
struct WorkerRank {
  std::optional<RankOf> in_job;   // RANK, WORLD_SIZE
  std::optional<RankOf> on_host;  // LOCAL_RANK, LOCAL_WORLD_SIZE
};

// Which of them are read. kInJob: a flag says which worker of its host it is.
enum class RanksRead { kAll, kInJob };

// Errors: one of two that belong together is missing; no whole numbers; a rank that is not below
// its size, or more processes on a host than in the job.
absl::StatusOr<WorkerRank> WorkerRankOf(const Environment& environment,
                                        RanksRead read = RanksRead::kAll);

// Takes these variables out of this process's environment. For what tug's own launchers start: its
// ranks are told by flags, and what another launcher has told tug itself is about other processes.
// Not pure, not thread-safe.
void ForgetRanks();

}  // namespace tug

#endif  // TUG_CLI_RANK_ENVIRONMENT_H_
