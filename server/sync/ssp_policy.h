// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SYNC_SSP_POLICY_H_
#define TUG_SERVER_SYNC_SSP_POLICY_H_

#include <memory>

#include "server/sync/sync_policy.h"

namespace tug {

// Stale synchronous parallel. Paper: Ho et al. 2013, "More effective distributed ML via a stale
// synchronous parallel parameter server", section 3. Rule: every push is an update, applied on
// arrival, each virtual worker's in the order of its clocks. With s = sync.staleness, a pull to
// begin clock c is served once the segment has all pushes of the live virtual workers with clock <
// c - s (so none is more than s clocks ahead of the slowest when it begins), and all of the
// sender's own with clock < c (it reads its own writes). A virtual worker that has pushed its last
// clock does not count as slow.
std::unique_ptr<const SyncPolicy> MakeSspPolicy(const SyncConfig& sync);

// Asynchronous parallel: the same with s = kMaxLead, so large that virtual workers do not wait for
// each other. Papers: Recht et al. 2011, "Hogwild!"; Dean et al. 2012, "Large scale distributed
// deep networks" (Downpour SGD).
std::unique_ptr<const SyncPolicy> MakeAspPolicy(const SyncConfig& sync);

}  // namespace tug

#endif  // TUG_SERVER_SYNC_SSP_POLICY_H_
