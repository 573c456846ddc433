// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_HIERARCHICAL_H_
#define TUG_COLLECTIVE_SCHEDULES_HIERARCHICAL_H_

// Hierarchical all-reduce (Jia et al. 2018, "Highly scalable deep learning training system with
// mixed-precision: training ImageNet in four minutes"), for links within a host that are faster
// than those between hosts. Ranks h K to h K + K - 1 are on host h, the last host may have fewer;
// the first rank of each is its leader. H = ceil(N / K) hosts, H parts.
//   1. On each host: reduce to the leader, along a binomial tree.
//   2. Among the leaders: a ring all-reduce (ring.h).
//   3. On each host: broadcast from the leader.
//
// 2 ceil(log2 K) rounds within hosts, of S bytes each, and 2 (H - 1) between hosts, where a leader
// sends 2 (H - 1) / H S bytes: the slow links carry a share per host, not per rank. With K = 1 it
// is the ring.

#include <cstdint>

#include "collective/schedules/cost.h"
#include "collective/schedules/schedule.h"

namespace tug {

// REQUIRES: ranks_per_host >= 1.
CollectiveSchedule HierarchicalAllReduce(uint32_t rank, uint32_t world, uint32_t ranks_per_host);

// ceil(log2 K) (2 alpha' + S (2 beta' + gamma')), alpha' to gamma' within a host, plus a ring of H
// between hosts. With one host and chunks of c < S bytes, (S - c) beta' less: the leader forwards a
// chunk while it receives the next, if messages do not wait for ports (port_order.h): in shared
// memory, or in a world of 2. `chunk_bytes` 0: messages wait for ports, or are not cut.
double HierarchicalAllReduceSeconds(const LinkCost& between_hosts, const LinkCost& within_host,
                                    uint32_t world, uint32_t ranks_per_host, uint64_t chunk_bytes,
                                    uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULES_HIERARCHICAL_H_
