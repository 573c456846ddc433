// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_MEMBERSHIP_NODE_NAMES_H_
#define TUG_COORDINATOR_MEMBERSHIP_NODE_NAMES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "proto/process_name.h"

namespace tug {

// Name of one node: the index in "worker-0", and the number of nodes that have had this name so
// far, itself included. A replacement has a life above 1.
struct NodeName {
  uint32_t index = 0;
  uint32_t life = 1;
};

// Assigns the names of a job's nodes (proto/process_name.h). Invariant: no two nodes of a kind hold
// one index. Node ids are never used again; names are, so that a replacement has the name of the
// node that it replaces. Not thread-safe.
class NodeNames {
 public:
  // Gives the index `wish` if no node holds it, otherwise the lowest index that no node holds.
  // Ignores a wish of kProcessIndexLimit or more.
  NodeName Give(NodeKind kind, std::optional<uint32_t> wish);
  // The holder was lost or has left. REQUIRES: a node holds the index.
  void Release(NodeKind kind, uint32_t index);

 private:
  struct Place {
    uint32_t lives = 0;
    bool held = false;
  };
  std::map<NodeKind, std::vector<Place>> places_;  // by index
};

}  // namespace tug

#endif  // TUG_COORDINATOR_MEMBERSHIP_NODE_NAMES_H_
