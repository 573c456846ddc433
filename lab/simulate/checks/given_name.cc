// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/checks/given_name.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "proto/control.pb.h"
#include "proto/process_name.h"

namespace tug {

std::string WrongName(const RegisterRequest& request, const RegisterReply& reply,
                      const StatusReply& status) {
  std::map<std::string, uint32_t> members;  // node ids by name
  for (const NodeStatus& node : status.nodes()) {
    const auto [other, is_new] = members.emplace(node.name(), node.node_id());
    if (!is_new) {
      return absl::StrCat("nodes ", other->second, " and ", node.node_id(), " are both ",
                          node.name());
    }
  }
  const auto own = members.find(reply.name());
  if (own == members.end() || own->second != reply.node_id()) {
    return absl::StrCat("node ", reply.node_id(), " is told to be ", reply.name(),
                        ", which the status denies");
  }
  if (!request.has_index()) return "";
  const std::string wish = ProcessName(KindName(request.kind()), request.index());
  if (members.contains(wish)) return "";
  return absl::StrCat("node ", reply.node_id(), " is ", reply.name(), ", although ", wish,
                      " was free");
}

}  // namespace tug
