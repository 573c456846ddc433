// SPDX-License-Identifier: Apache-2.0
#include "config/sync_mode.h"

#include "absl/strings/str_cat.h"

namespace tug {

std::string SyncName(const SyncConfig& sync) {
  std::string name = SyncModeOf(sync.policy()).name;
  if (sync.policy() == SyncConfig::SSP) absl::StrAppend(&name, "(", sync.staleness(), ")");
  if (sync.policy() == SyncConfig::BACKUP) absl::StrAppend(&name, "(", sync.backups(), ")");
  if (sync.local_steps() > 1) absl::StrAppend(&name, ", ", sync.local_steps(), " local steps");
  return name;
}

}  // namespace tug
