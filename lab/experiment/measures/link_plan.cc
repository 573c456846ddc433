// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/measures/link_plan.h"

#include <algorithm>
#include <vector>

namespace tug {

bool HasLinks(const Place& place) {
  return place.has_testbed() && !place.testbed().loopback() && place.testbed().link() != kNoLink;
}

double BusiestLinkModels(const JobHosts& nodes) {
  const uint32_t count = nodes.servers + nodes.workers;
  const uint32_t hosts = nodes.hosts == 0 ? count : nodes.hosts;
  std::vector<uint32_t> servers(hosts, 0), workers(hosts, 0);
  for (uint32_t node = 0; node < count; ++node) {
    ++(node < nodes.servers ? servers : workers)[node % hosts];
  }
  double most = 0;
  for (uint32_t host = 0; host < hosts; ++host) {
    // Pushes of its workers to remote servers, weights of its servers to remote workers.
    const double out = workers[host] * (nodes.servers - servers[host]) +
                       servers[host] * (nodes.workers - workers[host]);
    most = std::max(most, out / nodes.servers);
  }
  return most;
}

}  // namespace tug
