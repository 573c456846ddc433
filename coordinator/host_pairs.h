#ifndef TUG_COORDINATOR_HOST_PAIRS_H_
#define TUG_COORDINATOR_HOST_PAIRS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace tug {

struct HostedNode {
  uint32_t id = 0;
  uint64_t host_id = 0;  // RegisterRequest.host_id; 0: not known, so that of nobody else
};

// The server beside each worker, in the order of `workers`: one of its own host, of several the
// first that is free; those that are left over go together in the order they are given in. Nobody
// has a server twice. REQUIRES: as many servers as workers at least. Pure.
std::vector<uint32_t> PairHosts(std::span<const HostedNode> workers,
                                std::span<const HostedNode> servers);

}  // namespace tug

#endif  // TUG_COORDINATOR_HOST_PAIRS_H_
