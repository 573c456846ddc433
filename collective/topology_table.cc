// SPDX-License-Identifier: Apache-2.0
// Prints the simulated time of all-reduces over 64 ranks, each on its own network: the table of
// docs/collectives.md.
//
//   bazel run -c opt //collective:topology_table

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "collective/algorithms.h"
#include "collective/link_simulation.h"
#include "collective/network/topology.h"
#include "collective/schedules/grid.h"
#include "collective/schedules/mesh_2d.h"

namespace tug {
namespace {

constexpr uint32_t kWorld = 64;
constexpr std::array<uint32_t, 1> kRing = {kWorld};
constexpr LinkCost kLink{50e-6, 8e-9, 0.25e-9};
constexpr std::pair<const char*, uint64_t> kSizes[] = {
    {"4 KiB", 4 << 10}, {"256 KiB", 256 << 10}, {"4 MiB", 4 << 20}, {"64 MiB", 64 << 20}};

double Simulated(const char* name, const Topology& topology, uint64_t bytes, uint32_t parts) {
  const std::vector<CollectiveSchedule> family =
      AllReduceFamily(*FindAllReduce(name), kWorld, {.parts = parts});
  return SimulatedSeconds(family, topology, bytes);
}

// Best parts on the mesh itself: the table's formula, for a switch, would choose too few.
uint32_t BestPartsOnMesh(uint64_t bytes) {
  uint32_t best = 1;
  for (uint32_t parts = 2; parts <= 256; parts *= 2) {
    if (Mesh2dAllReduceSecondsOnMesh(kLink, kWorld, parts, bytes) <
        Mesh2dAllReduceSecondsOnMesh(kLink, kWorld, best, bytes)) {
      best = parts;
    }
  }
  return best;
}

void PrintTable() {
  const std::pair<const char*, Topology> rows[] = {
      {"ring", Topology::Torus(kRing, kLink)},
      {"bidirectional_ring", Topology::Torus(kRing, kLink)},
      {"torus_2d", Topology::Torus(MostSquare(kWorld).sides(), kLink)},
      {"torus_3d", Topology::Torus(MostCubic(kWorld).sides(), kLink)},
      {"mesh_2d", Topology::Mesh(MostSquare(kWorld).sides(), kLink)},
  };
  std::printf("| algorithm, on its own links | links |");
  for (const auto& [label, bytes] : kSizes) std::printf(" %s |", label);
  std::printf("\n|---|---:|---:|---:|---:|---:|\n");
  for (const auto& [name, topology] : rows) {
    std::printf("| `%s` | %u |", name, topology.links());
    for (const auto& [label, bytes] : kSizes) {
      const uint32_t parts = std::string(name) == "mesh_2d" ? BestPartsOnMesh(bytes) : 1;
      std::printf(" %.2f |", Simulated(name, topology, bytes, parts) * 1e3);
    }
    std::printf("\n");
  }
  std::printf("| `mesh_2d`, on a switch | |");
  for (const auto& [label, bytes] : kSizes) {
    const AllReduceAlgorithm& mesh = *FindAllReduce("mesh_2d");
    const uint32_t parts = WithBestParts(mesh, kLink, kWorld, bytes, {}).parts;
    std::printf(" %.2f |",
                Simulated("mesh_2d", Topology::Switch(kWorld, kLink), bytes, parts) * 1e3);
  }
  std::printf("\n");
}

}  // namespace
}  // namespace tug

int main() { tug::PrintTable(); }
