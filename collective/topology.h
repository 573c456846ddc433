#ifndef TUG_COLLECTIVE_TOPOLOGY_H_
#define TUG_COLLECTIVE_TOPOLOGY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "collective/cost.h"

namespace tug {

// Which ranks have a link, and through which ports: what link_simulation.h runs schedules on.
class Topology {
 public:
  // From one rank to another.
  struct Path {
    uint32_t out = 0;  // number of the sender's port
    uint32_t in = 0;   // and of the receiver's
    LinkCost link;
  };

  // One port a rank, every rank a link away from every other.
  static Topology Switch(uint32_t world, const LinkCost& link);
  // One port a host, shared by its ranks, to other hosts, and one a rank within its host. Ranks
  // lie as in hierarchical.h.
  static Topology Hosts(uint32_t world, uint32_t ranks_per_host, const LinkCost& between_hosts,
                        const LinkCost& within_host);
  // A port, and a link of full rate in both directions, for each neighbour, and no other links.
  // Ranks lie as in torus.h; the lines of a torus are rings, those of a mesh are open.
  static Topology Torus(std::span<const uint32_t> sides, const LinkCost& link);
  static Topology Mesh(std::span<const uint32_t> sides, const LinkCost& link);

  // None: there is no link.
  std::optional<Path> Between(uint32_t from, uint32_t to) const;
  uint32_t ports() const { return ports_; }
  // Both directions of a link are one.
  uint32_t links() const { return static_cast<uint32_t>(paths_.size() / 2); }

 private:
  static Topology Grid(std::span<const uint32_t> sides, bool closed, const LinkCost& link);
  // A link with ports of its own, unless there is one.
  void AddLink(uint32_t a, uint32_t b, const LinkCost& link);

  uint32_t ports_ = 0;
  std::map<std::pair<uint32_t, uint32_t>, Path> paths_;
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_TOPOLOGY_H_
