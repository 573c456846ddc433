#ifndef TUG_COORDINATOR_MIXED_SHARES_H_
#define TUG_COORDINATOR_MIXED_SHARES_H_

// How many bytes each server of a job with `placement.kind: MIXED` is to own (Jiang et al., "A
// Unified Architecture for Accelerating Distributed DNN Training in Heterogeneous GPU/CPU
// Clusters", OSDI 2020, section 4.1).
//
// There are n hosts with workers, b of them with servers beside the workers, and k hosts of servers
// alone. Of all bytes each of the b hosts owns x, each of the k hosts y: b x + k y = 1. What
// crosses a host's link a step, each way, in multiples of all bytes:
//   worker and server   1 - x of its own worker, which leaves out what is beside it,
//                       and x of each of the n - 1 other workers:  1 + (n - 2) x
//   server alone        y of each of the n workers:                n y
//   worker alone        1
// Both kinds that own something are equally busy where 1 + (n - 2) x = n y, so
//   x = (n - k) / (b n + k (n - 2)),   y = (n - 2 + b) / (b n + k (n - 2)),
// which with b = n is the paper's (n - k) / (n^2 + k n - 2 k) and 2 (n - 1) / (n^2 + k n - 2 k).
//   k >= n   x = 0, and y = 1 / k: servers beside workers own nothing, a parameter server
//   k = 0    x = 1 / b: all servers are beside workers, and equal
//   n = 1    x = 1: what is beside the only worker crosses no link
// This takes for granted: full-duplex links of equal rate, a bottleneck each; as many bytes pushed
// as pulled, by all workers the same; as many workers on one host as on another; shared memory
// within a host.

#include <cstdint>
#include <span>
#include <vector>

namespace tug {

// Shares of a host, in proportion: whole numbers.
struct HostShares {
  uint32_t beside = 0;  // with workers and servers
  uint32_t own = 0;     // with servers alone
};
// Pure. REQUIRES: worker_hosts >= with_servers; with_servers + server_hosts >= 1.
HostShares MixedShares(uint32_t worker_hosts, uint32_t with_servers, uint32_t server_hosts);

// By server, the weight of what it is to own: its host's share, the same for all servers of a host
// (to within 1 / 60 of it where hosts have different numbers of them). `server_hosts`,
// `worker_hosts`: host of each server and worker (RegisterRequest.host_id); 0: one of its own. One
// weight at least is not 0. Pure. REQUIRES: a worker and a server at least.
std::vector<uint32_t> MixedWeights(std::span<const uint64_t> server_hosts,
                                   std::span<const uint64_t> worker_hosts);

}  // namespace tug

#endif  // TUG_COORDINATOR_MIXED_SHARES_H_
