// SPDX-License-Identifier: Apache-2.0
#include "server/sync/sync_policy.h"

#include "base/check.h"
#include "server/sync/backup_policy.h"
#include "server/sync/bsp_policy.h"
#include "server/sync/ssp_policy.h"

namespace tug {
namespace {

struct PolicyRow {
  SyncConfig::Policy policy;
  std::unique_ptr<const SyncPolicy> (*make)(const SyncConfig& sync);
};

constexpr PolicyRow kPolicies[] = {
    {SyncConfig::POLICY_DEFAULT, MakeBspPolicy},
    {SyncConfig::BSP, MakeBspPolicy},
    {SyncConfig::SSP, MakeSspPolicy},
    {SyncConfig::ASP, MakeAspPolicy},
    {SyncConfig::BACKUP, MakeBackupPolicy},
};

}  // namespace

std::unique_ptr<const SyncPolicy> MakeSyncPolicy(const SyncConfig& sync) {
  for (const PolicyRow& row : kPolicies) {
    if (row.policy == sync.policy()) return row.make(sync);
  }
  TUG_CHECK(false) << "sync policy " << sync.policy();
  return nullptr;
}

}  // namespace tug
