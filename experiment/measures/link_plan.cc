// SPDX-License-Identifier: Apache-2.0
#include "experiment/measures/link_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tug {

absl::StatusOr<double> ParseLinkRate(const std::string& text) {
  absl::string_view rest = text;
  double unit = 0;
  for (const auto& [name, bits] :
       {std::pair{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"bit", 1.0}}) {
    if (!absl::ConsumeSuffix(&rest, name)) continue;
    unit = bits;
    break;
  }
  uint32_t number = 0;
  const bool digits = std::all_of(rest.begin(), rest.end(), absl::ascii_isdigit);
  if (unit == 0 || rest.size() > 6 || !digits || !absl::SimpleAtoi(rest, &number) || number == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--link ", text, " is not a rate: write for example 100mbit or 1gbit"));
  }
  return number * unit;
}

bool HasLinks(const Place& place) {
  return place.has_testbed() && !place.testbed().loopback() && place.testbed().link() != kNoLink;
}

double PayloadBytesPerSecond(double bits_per_second) { return bits_per_second / 8 * 1448 / 1514; }

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
