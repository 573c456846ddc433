// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_PLACEMENT_MIXED_SHARES_H_
#define TUG_COORDINATOR_PLACEMENT_MIXED_SHARES_H_

// Shares of bytes that the servers of a job with `placement.kind: MIXED` own (Jiang et al., "A
// Unified Architecture for Accelerating Distributed DNN Training in Heterogeneous GPU/CPU
// Clusters", OSDI 2020, section 4.1).
//
// n hosts have workers, b of them servers too, and k hosts have servers only. Each of the b hosts
// owns a share x of all bytes, each of the k hosts y: b x + k y = 1. Traffic per step on a host's
// link, each way, as a multiple of all bytes:
//   worker and server   1 - x of its own worker, whose traffic with its own server stays local,
//                       and x of each of the n - 1 other workers:  1 + (n - 2) x
//   server only         y of each of the n workers:                n y
//   worker only         1
// Both kinds of owners are equally busy where 1 + (n - 2) x = n y, so
//   x = (n - k) / (b n + k (n - 2)),   y = (n - 2 + b) / (b n + k (n - 2)),
// which for b = n is the paper's (n - k) / (n^2 + k n - 2 k) and 2 (n - 1) / (n^2 + k n - 2 k).
//   k >= n   x = 0, y = 1 / k: servers next to workers own nothing, a parameter server
//   k = 0    x = 1 / b: all servers are next to workers, and equal
//   n = 1    x = 1: traffic with the server next to the only worker crosses no link
// Assumes full-duplex links of equal rate, each a bottleneck; as many bytes pushed as pulled,
// equally by all workers; equally many workers per host; shared memory within a host.

#include <cstdint>
#include <span>
#include <vector>

namespace tug {

// Relative shares per host; integers.
struct HostShares {
  uint32_t beside = 0;  // hosts with workers and servers
  uint32_t own = 0;     // hosts with servers only
};
// Pure. REQUIRES: worker_hosts >= with_servers; with_servers + server_hosts >= 1.
HostShares MixedShares(uint32_t worker_hosts, uint32_t with_servers, uint32_t server_hosts);

// Weight of each server's owned bytes: its host's share, divided equally among the servers of the
// host (to within 1 / 60 of it where hosts have different numbers of them). `server_hosts`,
// `worker_hosts`: host of each server and worker (RegisterRequest.host_id); 0: a host of its own.
// At least one weight is not 0. Pure. REQUIRES: at least one worker and one server.
std::vector<uint32_t> MixedWeights(std::span<const uint64_t> server_hosts,
                                   std::span<const uint64_t> worker_hosts);

}  // namespace tug

#endif  // TUG_COORDINATOR_PLACEMENT_MIXED_SHARES_H_
