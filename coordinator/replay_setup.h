#ifndef TUG_COORDINATOR_REPLAY_SETUP_H_
#define TUG_COORDINATOR_REPLAY_SETUP_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace tug {

// Finds the profile of a replay and resolves config.replay, and of config.train what follows from
// it. `config` as LoadJobConfig returns it. Errors, naming replay.profile: those of
// LoadReplayProfile, of CheckReplayProfile once it is scaled, of CheckDeclaredBlocks.
// REQUIRES: compute is REPLAY.
absl::Status ResolveReplay(JobConfig& config);

}  // namespace tug

#endif  // TUG_COORDINATOR_REPLAY_SETUP_H_
