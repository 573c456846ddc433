// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_PLACEMENT_HOST_PAIRS_H_
#define TUG_COORDINATOR_PLACEMENT_HOST_PAIRS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace tug {

struct HostedNode {
  uint32_t id = 0;
  uint64_t host_id = 0;  // RegisterRequest.host_id; 0: unknown, equal to no other
};

// Pairs each worker with a server of its own, in the order of `workers`: the first free one on its
// host; the remaining workers and servers are paired in the given order. REQUIRES: at least as many
// servers as workers. Pure.
std::vector<uint32_t> PairHosts(std::span<const HostedNode> workers,
                                std::span<const HostedNode> servers);

}  // namespace tug

#endif  // TUG_COORDINATOR_PLACEMENT_HOST_PAIRS_H_
