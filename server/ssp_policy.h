#ifndef TUG_SERVER_SSP_POLICY_H_
#define TUG_SERVER_SSP_POLICY_H_

#include <memory>

#include "server/sync_policy.h"

namespace tug {

// Stale synchronous parallel. Paper: Ho et al. 2013, "More effective distributed ML via a stale
// synchronous parallel parameter server", section 3.
// Rule: every push is an update, applied when it comes, each virtual worker's in the order of its
// clocks. With s = sync.staleness, a pull of who wants to begin clock c is served once the segment
// has all pushes of the live virtual workers with clock < c - s (so nobody is more than s clocks
// ahead of the slowest when it begins), and all of the sender's own with clock < c (it reads what
// it wrote). Who has pushed its last clock is not slow.
std::unique_ptr<const SyncPolicy> MakeSspPolicy(const SyncConfig& sync);

// Asynchronous parallel: the same with s = kMostLead, where nobody waits for anybody. Papers: Recht
// et al. 2011, "Hogwild!"; Dean et al. 2012, "Large scale distributed deep networks" (Downpour
// SGD).
std::unique_ptr<const SyncPolicy> MakeAspPolicy(const SyncConfig& sync);

}  // namespace tug

#endif  // TUG_SERVER_SSP_POLICY_H_
