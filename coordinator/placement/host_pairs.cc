// SPDX-License-Identifier: Apache-2.0
#include "coordinator/placement/host_pairs.h"

#include <functional>
#include <optional>

#include "base/check.h"

namespace tug {

std::vector<uint32_t> PairHosts(std::span<const HostedNode> workers,
                                std::span<const HostedNode> servers) {
  TUG_CHECK_GE(servers.size(), workers.size());
  std::vector<std::optional<uint32_t>> server_of(workers.size());
  std::vector<bool> taken(servers.size(), false);
  const auto pair = [&](const std::function<bool(const HostedNode&, const HostedNode&)>& fits) {
    for (size_t w = 0; w < workers.size(); ++w) {
      for (size_t s = 0; s < servers.size() && !server_of[w].has_value(); ++s) {
        if (taken[s] || !fits(workers[w], servers[s])) continue;
        server_of[w] = servers[s].id;
        taken[s] = true;
      }
    }
  };
  pair([](const HostedNode& worker, const HostedNode& server) {
    return worker.host_id != 0 && worker.host_id == server.host_id;
  });
  pair([](const HostedNode&, const HostedNode&) { return true; });
  std::vector<uint32_t> ids;
  for (const std::optional<uint32_t>& id : server_of) ids.push_back(*id);
  return ids;
}

}  // namespace tug
