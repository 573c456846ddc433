// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/waiting_nodes.h"

#include <algorithm>

namespace tug {

bool WaitingNodes::MayAskAgain(uint64_t node, absl::Time now) {
  std::erase_if(nodes_, [&](const auto& entry) { return now - entry.second.last > patience_; });
  if (nodes_.size() >= kMost && !nodes_.contains(node)) return false;
  Asked& asked = nodes_.try_emplace(node, Asked{.first = now, .last = now}).first->second;
  asked.last = now;
  return now - asked.first < patience_;
}

bool WaitingNodes::SomebodyAsks(absl::Time now) const {
  return std::ranges::any_of(
      nodes_, [&](const auto& entry) { return now - entry.second.last <= kAsksWithin; });
}

}  // namespace tug
