// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SYNC_BACKUP_POLICY_H_
#define TUG_SERVER_SYNC_BACKUP_POLICY_H_

#include <memory>

#include "server/sync/sync_policy.h"

namespace tug {

// Synchronous with backup workers. Paper: Chen et al. 2016, "Revisiting distributed synchronous
// SGD", algorithm 2, where N of N + b workers' gradients make an update. Rule: with k =
// sync.backups, an update of a segment closes when the pushes of all but k live virtual workers (at
// least one) for that clock have arrived. Later pushes are dropped: they are part of no version. A
// pull is served once the segment has the version it names, with the newest version: a worker whose
// push was dropped continues from there. applied_clocks.h tells repeated pushes from dropped ones;
// a push it no longer remembers is answered as applied, so that no worker adds it to a residual
// again.
std::unique_ptr<const SyncPolicy> MakeBackupPolicy(const SyncConfig& sync);

}  // namespace tug

#endif  // TUG_SERVER_SYNC_BACKUP_POLICY_H_
