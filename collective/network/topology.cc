// SPDX-License-Identifier: Apache-2.0
#include "collective/network/topology.h"

#include <functional>
#include <numeric>

#include "base/check.h"

namespace tug {

Topology Topology::Switch(uint32_t world, const LinkCost& link) {
  return Hosts(world, 1, link, link);
}

Topology Topology::Hosts(uint32_t world, uint32_t ranks_per_host, const LinkCost& between_hosts,
                         const LinkCost& within_host) {
  TUG_CHECK(ranks_per_host >= 1);
  Topology topology;
  // Ports 2r (out) and 2r + 1 (in) belong to rank r within its host; ports of hosts follow.
  const uint32_t hosts = (world + ranks_per_host - 1) / ranks_per_host;
  topology.ports_ = 2 * (world + hosts);
  for (uint32_t a = 0; a < world; ++a) {
    for (uint32_t b = 0; b < world; ++b) {
      if (a == b) continue;
      const uint32_t from = a / ranks_per_host, to = b / ranks_per_host;
      topology.paths_[{a, b}] = from == to
                                    ? Path{2 * a, 2 * b + 1, within_host}
                                    : Path{2 * (world + from), 2 * (world + to) + 1, between_hosts};
    }
  }
  return topology;
}

Topology Topology::Torus(std::span<const uint32_t> sides, const LinkCost& link) {
  return Grid(sides, true, link);
}

Topology Topology::Mesh(std::span<const uint32_t> sides, const LinkCost& link) {
  return Grid(sides, false, link);
}

Topology Topology::Grid(std::span<const uint32_t> sides, bool closed, const LinkCost& link) {
  const uint32_t world = std::accumulate(sides.begin(), sides.end(), 1u, std::multiplies());
  Topology topology;
  uint32_t stride = 1;
  for (const uint32_t side : sides) {
    for (uint32_t rank = 0; rank < world; ++rank) {
      const uint32_t position = rank / stride % side;
      const uint32_t first = rank - position * stride;
      if (position > 0) topology.AddLink(rank - stride, rank, link);
      if (closed && position == side - 1 && side > 2) topology.AddLink(rank, first, link);
    }
    stride *= side;
  }
  return topology;
}

std::optional<Topology::Path> Topology::Between(uint32_t from, uint32_t to) const {
  const auto it = paths_.find({from, to});
  if (it == paths_.end()) return std::nullopt;
  return it->second;
}

void Topology::AddLink(uint32_t a, uint32_t b, const LinkCost& link) {
  for (const auto& ends : {std::pair{a, b}, std::pair{b, a}}) {
    if (paths_.try_emplace(ends, Path{ports_, ports_ + 1, link}).second) ports_ += 2;
  }
}

}  // namespace tug
