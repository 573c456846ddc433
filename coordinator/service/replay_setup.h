// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_SERVICE_REPLAY_SETUP_H_
#define TUG_COORDINATOR_SERVICE_REPLAY_SETUP_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace tug {

// Loads the profile of a replay and resolves config.replay, and the fields of config.train that
// follow from it. `config`: from LoadJobConfig. Errors, naming replay.profile: those of
// LoadReplayProfile, of CheckReplayProfile after scaling, and of CheckDeclaredBlocks. REQUIRES:
// compute is REPLAY.
absl::Status ResolveReplay(JobConfig& config);

}  // namespace tug

#endif  // TUG_COORDINATOR_SERVICE_REPLAY_SETUP_H_
