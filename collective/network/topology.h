// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_NETWORK_TOPOLOGY_H_
#define TUG_COLLECTIVE_NETWORK_TOPOLOGY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "collective/schedules/cost.h"

namespace tug {

// Links between ranks, and the ports they use; link_simulation.h runs schedules on it.
class Topology {
 public:
  // Connection from one rank to another.
  struct Path {
    uint32_t out = 0;  // sender's port
    uint32_t in = 0;   // receiver's port
    LinkCost link;
  };

  // One port per rank; every two ranks are linked.
  static Topology Switch(uint32_t world, const LinkCost& link);
  // One port per host, shared by its ranks, to other hosts; one port per rank within its host.
  // Ranks are placed as in hierarchical.h.
  static Topology Hosts(uint32_t world, uint32_t ranks_per_host, const LinkCost& between_hosts,
                        const LinkCost& within_host);
  // For each neighbour, a port and a link with full rate in both directions; no other links. Ranks
  // are placed as in torus.h; the lines of a torus are rings, those of a mesh are open.
  static Topology Torus(std::span<const uint32_t> sides, const LinkCost& link);
  static Topology Mesh(std::span<const uint32_t> sides, const LinkCost& link);

  // None: no link.
  std::optional<Path> Between(uint32_t from, uint32_t to) const;
  uint32_t ports() const { return ports_; }
  // Number of links; both directions count as one.
  uint32_t links() const { return static_cast<uint32_t>(paths_.size() / 2); }

 private:
  static Topology Grid(std::span<const uint32_t> sides, bool closed, const LinkCost& link);
  // Adds a link with new ports, unless the two ranks have one.
  void AddLink(uint32_t a, uint32_t b, const LinkCost& link);

  uint32_t ports_ = 0;
  std::map<std::pair<uint32_t, uint32_t>, Path> paths_;
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_NETWORK_TOPOLOGY_H_
