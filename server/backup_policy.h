#ifndef TUG_SERVER_BACKUP_POLICY_H_
#define TUG_SERVER_BACKUP_POLICY_H_

#include <memory>

#include "server/sync_policy.h"

namespace tug {

// Synchronous with backup workers. Paper: Chen et al. 2016, "Revisiting distributed synchronous
// SGD", algorithm 2, where N of N + b workers' gradients make an update.
// Rule: with k = sync.backups, an update of a segment closes when the pushes of all but k live
// virtual workers (one at least) for that clock are in. What comes later is dropped: it is part of
// no version. A pull is served once the segment has the version it names, with the newest there is:
// who was dropped goes on from there.
// A push that is repeated is told from one that was dropped by applied_clocks.h; of what that no
// longer knows, the answer is that it was applied, so that nobody puts it in a residual again.
std::unique_ptr<const SyncPolicy> MakeBackupPolicy(const SyncConfig& sync);

}  // namespace tug

#endif  // TUG_SERVER_BACKUP_POLICY_H_
