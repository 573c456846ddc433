// SPDX-License-Identifier: Apache-2.0
#include "coordinator/placement/mixed_shares.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/check.h"

namespace tug {
namespace {

// Divisible by the likely numbers of servers per host.
constexpr uint32_t kPartsOfAShare = 60;

}  // namespace

HostShares MixedShares(uint32_t worker_hosts, uint32_t with_servers, uint32_t server_hosts) {
  TUG_CHECK_GE(worker_hosts, with_servers);
  TUG_CHECK_GE(with_servers + server_hosts, 1u);
  if (with_servers == 0 || server_hosts == 0) return {.beside = 1, .own = 1};
  if (worker_hosts == 1) return {.beside = 1, .own = 0};
  return {.beside = worker_hosts > server_hosts ? worker_hosts - server_hosts : 0,
          .own = worker_hosts - 2 + with_servers};
}

std::vector<uint32_t> MixedWeights(std::span<const uint64_t> server_hosts,
                                   std::span<const uint64_t> worker_hosts) {
  TUG_CHECK(!server_hosts.empty() && !worker_hosts.empty());
  std::set<uint64_t> with_workers(worker_hosts.begin(), worker_hosts.end());
  // Each unknown host counts as a host of its own.
  const auto unknown = std::ranges::count(worker_hosts, uint64_t{0});
  with_workers.erase(0);
  std::map<uint64_t, uint32_t> servers_of;
  uint32_t beside = 0, own = 0;  // number of hosts
  for (const uint64_t host : server_hosts) {
    if (host != 0 && servers_of[host]++ > 0) continue;
    (with_workers.count(host) > 0 ? beside : own) += 1;
  }
  const HostShares shares = MixedShares(
      static_cast<uint32_t>(with_workers.size()) + static_cast<uint32_t>(unknown), beside, own);
  std::vector<uint32_t> weights;
  uint32_t divisor = 0;
  for (const uint64_t host : server_hosts) {
    const uint32_t share = with_workers.count(host) > 0 ? shares.beside : shares.own;
    const uint32_t servers = host == 0 ? 1 : servers_of[host];
    const uint32_t parts = share * kPartsOfAShare / servers;
    weights.push_back(share > 0 ? std::max(parts, 1u) : 0);
    divisor = std::gcd(divisor, weights.back());
  }
  for (uint32_t& weight : weights) weight /= divisor;
  return weights;
}

}  // namespace tug
