// SPDX-License-Identifier: Apache-2.0
#include "exchange/chosen_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "blocks/view_lanes.h"

namespace tug {
namespace {

constexpr size_t kMaxServers = 8;  // servers of a group that are listed by number

std::string RateText(double bytes_per_second) {
  const double mbit = bytes_per_second * 8e-6;
  return mbit < 1000 ? absl::StrFormat("%.3g Mbit/s", mbit)
                     : absl::StrFormat("%.3g Gbit/s", mbit / 1000);
}

const std::string kPullNames[] = {"fp32", "int8"};

}  // namespace

std::string DescribeChoices(const LinkChoices& choices, bool rates) {
  std::vector<std::string> parts;
  if (!choices.pushes.empty()) {
    const std::string pushes = DescribeChosen(choices.pushes, choices.push_names, rates);
    if (pushes.empty()) return "";
    parts.push_back(absl::StrCat("pushes to ", pushes));
  }
  if (!choices.pulls.empty()) {
    const std::string pulls = DescribeChosen(choices.pulls, kPullNames, rates);
    if (pulls.empty()) return "";
    parts.push_back(absl::StrCat("pulls from ", pulls));
  }
  return absl::StrJoin(parts, "; ");
}

std::string DescribeChosen(std::span<const CodecChooser::Chosen> chosen,
                           std::span<const std::string> names, bool rates) {
  // Groups servers by the choice of their lanes. The lanes of a server share its link.
  struct Group {
    uint32_t method = 0;
    bool shares_memory = false;
    double fastest = 0;
    std::vector<uint32_t> servers = {};
  };
  std::vector<Group> groups;
  for (const CodecChooser::Chosen& lane : chosen) {
    if (!lane.settled) return "";
    const bool shares_memory = lane.bytes_per_second == 0;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
      return g.method == lane.method && g.shares_memory == shares_memory;
    });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), {.method = lane.method, .shares_memory = shares_memory});
    }
    const uint32_t server = lane.lane / kMaxLanesPerServer;
    if (group->servers.empty() || group->servers.back() != server) group->servers.push_back(server);
    group->fastest = std::max(group->fastest, lane.bytes_per_second);
  }
  std::vector<std::string> texts;
  for (const Group& group : groups) {
    std::string how = group.shares_memory ? " (shared memory)" : "";
    if (!group.shares_memory && rates) {
      how = absl::StrCat(" (", RateText(group.fastest), ")");
    }
    const bool one = group.servers.size() == 1;
    const std::string servers =
        group.servers.size() > kMaxServers
            ? absl::StrCat(group.servers.size(), " servers")
            : absl::StrCat(one ? "server " : "servers ", absl::StrJoin(group.servers, ", "));
    texts.push_back(absl::StrCat(servers, " as ", names[group.method], how));
  }
  return absl::StrJoin(texts, ", ");
}

}  // namespace tug
