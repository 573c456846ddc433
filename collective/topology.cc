#include "collective/topology.h"

#include "base/check.h"
#include "collective/grid.h"

namespace tug {

Topology Topology::Switch(uint32_t world, const LinkCost& link) {
  return Hosts(world, 1, link, link);
}

Topology Topology::Hosts(uint32_t world, uint32_t ranks_per_host, const LinkCost& between_hosts,
                         const LinkCost& within_host) {
  TUG_CHECK(ranks_per_host >= 1);
  Topology topology;
  // Ports 2r and 2r + 1, out and in, are rank r's within its host; those of hosts follow.
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

Topology Topology::Ring(uint32_t world, const LinkCost& link) {
  Topology topology;
  topology.AddLine(0, 1, world, true, link);
  return topology;
}

Topology Topology::Torus2d(uint32_t world, const LinkCost& link) {
  const auto [rows, columns] = MostSquare(world);
  Topology topology;
  for (uint32_t row = 0; row < rows; ++row) {
    topology.AddLine(row * columns, 1, columns, true, link);
  }
  for (uint32_t column = 0; column < columns; ++column) {
    topology.AddLine(column, columns, rows, true, link);
  }
  return topology;
}

Topology Topology::Mesh2d(uint32_t world, const LinkCost& link) {
  const auto [rows, columns] = MostSquare(world);
  Topology topology;
  for (uint32_t row = 0; row < rows; ++row) {
    topology.AddLine(row * columns, 1, columns, false, link);
  }
  for (uint32_t column = 0; column < columns; ++column) {
    topology.AddLine(column, columns, rows, false, link);
  }
  return topology;
}

Topology Topology::Torus3d(uint32_t world, const LinkCost& link) {
  const auto [x_size, y_size, z_size] = MostCubic(world);
  const uint32_t layer = x_size * y_size;
  Topology topology;
  for (uint32_t rank = 0; rank < world; ++rank) {
    if (rank % x_size == 0) topology.AddLine(rank, 1, x_size, true, link);
    if (rank / x_size % y_size == 0) topology.AddLine(rank, x_size, y_size, true, link);
    if (rank / layer == 0) topology.AddLine(rank, layer, z_size, true, link);
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

void Topology::AddLine(uint32_t first, uint32_t stride, uint32_t count, bool closed,
                       const LinkCost& link) {
  for (uint32_t i = 0; i + 1 < count; ++i) {
    AddLink(first + i * stride, first + (i + 1) * stride, link);
  }
  if (closed && count > 2) AddLink(first + (count - 1) * stride, first, link);
}

}  // namespace tug
