// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/replay_setup.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "blocks/declared_blocks.h"
#include "model/replay/replay_profile.h"

namespace tug {

absl::Status ResolveReplay(JobConfig& config) {
  ReplayConfig& replay = *config.mutable_replay();
  ASSIGN_OR_RETURN(ReplayProfile profile, LoadReplayProfile(replay.profile()));
  *replay.mutable_resolved_profile() =
      ScaledReplayProfile(std::move(profile), replay.time_scale(), replay.size_scale());
  absl::Status checked = CheckReplayProfile(replay.resolved_profile());
  if (checked.ok()) {
    checked = CheckDeclaredBlocks(ReplayLayout(replay.resolved_profile()),
                                  config.comm().segment_elements());
  }
  if (!checked.ok()) {
    return absl::Status(checked.code(),
                        absl::StrCat("replay.profile ", replay.profile(), ": ", checked.message()));
  }
  const uint32_t batch = replay.resolved_profile().batch();
  config.mutable_train()->set_micro_batch(batch);
  config.mutable_train()->set_global_batch(batch * config.cluster().virtual_workers());
  return absl::OkStatus();
}

}  // namespace tug
