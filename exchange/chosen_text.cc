// SPDX-License-Identifier: Apache-2.0
#include "exchange/chosen_text.h"

#include <algorithm>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "blocks/view_lanes.h"

namespace tug {
namespace {

constexpr size_t kMaxServers = 8;  // servers of a group that are listed by name

std::string RateText(double bytes_per_second) {
  const double mbit = bytes_per_second * 8e-6;
  return mbit < 1000 ? absl::StrFormat("%.3g Mbit/s", mbit)
                     : absl::StrFormat("%.3g Gbit/s", mbit / 1000);
}

const std::string kPullNames[] = {"fp32", "int8"};

// "server-0 as top_k_int8 (92 Mbit/s), server-1, server-2 as fp32 (shared memory)"; empty until all
// lanes have settled, and while one belongs to another view. `methods`: their names.
std::string DescribeChosen(std::span<const CodecChooser::Chosen> chosen,
                           std::span<const std::string> methods,
                           const std::map<uint32_t, std::string>& servers, bool rates) {
  // Groups servers by the choice of their lanes. The lanes of a server share its link.
  struct Group {
    uint32_t method = 0;
    bool shares_memory = false;
    double fastest = 0;
    std::vector<std::string> servers = {};
  };
  std::vector<Group> groups;
  for (const CodecChooser::Chosen& lane : chosen) {
    const auto server = servers.find(lane.lane / kMaxLanesPerServer);
    if (!lane.settled || server == servers.end()) return "";
    const bool shares_memory = lane.bytes_per_second == 0;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
      return g.method == lane.method && g.shares_memory == shares_memory;
    });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), {.method = lane.method, .shares_memory = shares_memory});
    }
    const std::string& name = server->second;
    if (group->servers.empty() || group->servers.back() != name) group->servers.push_back(name);
    group->fastest = std::max(group->fastest, lane.bytes_per_second);
  }
  std::vector<std::string> texts;
  for (const Group& group : groups) {
    std::string how = group.shares_memory ? " (shared memory)" : "";
    if (!group.shares_memory && rates) {
      how = absl::StrCat(" (", RateText(group.fastest), ")");
    }
    const std::string who = group.servers.size() > kMaxServers
                                ? absl::StrCat(group.servers.size(), " servers")
                                : absl::StrJoin(group.servers, ", ");
    texts.push_back(absl::StrCat(who, " as ", methods[group.method], how));
  }
  return absl::StrJoin(texts, ", ");
}

}  // namespace

std::string DescribeChoices(const LinkChoices& choices,
                            const std::map<uint32_t, std::string>& servers, bool rates) {
  std::vector<std::string> parts;
  if (!choices.pushes.empty()) {
    const std::string pushes = DescribeChosen(choices.pushes, choices.push_names, servers, rates);
    if (pushes.empty()) return "";
    parts.push_back(absl::StrCat("pushes to ", pushes));
  }
  if (!choices.pulls.empty()) {
    const std::string pulls = DescribeChosen(choices.pulls, kPullNames, servers, rates);
    if (pulls.empty()) return "";
    parts.push_back(absl::StrCat("pulls from ", pulls));
  }
  return absl::StrJoin(parts, "; ");
}

}  // namespace tug
