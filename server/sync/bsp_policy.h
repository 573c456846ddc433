// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SYNC_BSP_POLICY_H_
#define TUG_SERVER_SYNC_BSP_POLICY_H_

#include <memory>

#include "server/sync/sync_policy.h"

namespace tug {

// Bulk synchronous parallel. Paper: Valiant 1990, "A bridging model for parallel computation".
// Rule: an update of a segment closes when the pushes of all live virtual workers for that clock
// have arrived; a pull is served once the segment has the version it names, and with that version.
std::unique_ptr<const SyncPolicy> MakeBspPolicy(const SyncConfig& sync);

}  // namespace tug

#endif  // TUG_SERVER_SYNC_BSP_POLICY_H_
