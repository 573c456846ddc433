// SPDX-License-Identifier: Apache-2.0
#include "collective/algorithms.h"

#include <array>

#include "base/check.h"
#include "collective/link_simulation.h"
#include "collective/network/topology.h"
#include "collective/schedules/binary_tree.h"
#include "collective/schedules/grid.h"
#include "collective/schedules/halving_doubling.h"
#include "collective/schedules/hierarchical.h"
#include "collective/schedules/mesh_2d.h"
#include "collective/schedules/recursive_doubling.h"
#include "collective/schedules/ring.h"
#include "collective/schedules/torus.h"

namespace tug {
namespace {

using Settings = AllReduceSettings;

constexpr uint32_t kMostParts = 256;
// Relative tolerance for equal costs: sums of the same terms in different orders.
constexpr double kSame = 1e-9;

bool CostsLess(double seconds, double than) { return seconds < than * (1 - kSame); }

// Adapts an algorithm without settings.
template <CollectiveSchedule (*schedule)(uint32_t, uint32_t)>
CollectiveSchedule Plain(uint32_t rank, uint32_t world, const Settings&) {
  return schedule(rank, world);
}
template <double (*seconds)(const LinkCost&, uint32_t, uint64_t)>
double PlainSeconds(const LinkCost& link, uint32_t world, uint64_t bytes, const Settings&) {
  return seconds(link, world, bytes);
}

// Adapts a pipelined algorithm.
template <CollectiveSchedule (*schedule)(uint32_t, uint32_t, uint32_t)>
CollectiveSchedule InParts(uint32_t rank, uint32_t world, const Settings& settings) {
  return schedule(rank, world, settings.parts);
}
template <double (*seconds)(const LinkCost&, uint32_t, uint32_t, uint64_t)>
double SecondsInParts(const LinkCost& link, uint32_t world, uint64_t bytes,
                      const Settings& settings) {
  return seconds(link, world, settings.parts, bytes);
}

CollectiveSchedule Hierarchical(uint32_t rank, uint32_t world, const Settings& settings) {
  return HierarchicalAllReduce(rank, world, settings.ranks_per_host);
}
LinkCost WithinHost(const Settings& settings) {
  TUG_CHECK(settings.ranks_per_host == 1 || settings.within_host)
      << "a cost with " << settings.ranks_per_host << " ranks a host needs within_host";
  return settings.within_host.value_or(LinkCost{});
}
double HierarchicalSeconds(const LinkCost& link, uint32_t world, uint64_t bytes,
                           const Settings& settings) {
  return HierarchicalAllReduceSeconds(link, WithinHost(settings), world, settings.ranks_per_host,
                                      settings.chunk_bytes, bytes);
}

// One host per row if hosts have several ranks and are full; else the most square grid.
std::array<uint32_t, 2> Sides2d(uint32_t world, const Settings& settings) {
  const uint32_t row = settings.ranks_per_host;
  if (row > 1 && world % row == 0) return {row, world / row};
  return MostSquare(world).sides();
}
CollectiveSchedule Torus2d(uint32_t rank, uint32_t world, const Settings& settings) {
  return TorusAllReduce(rank, Sides2d(world, settings));
}
double Torus2dSeconds(const LinkCost& link, uint32_t world, uint64_t bytes,
                      const Settings& settings) {
  return TorusAllReduceSeconds(link, Sides2d(world, settings), bytes);
}
CollectiveSchedule Torus3d(uint32_t rank, uint32_t world, const Settings&) {
  return TorusAllReduce(rank, MostCubic(world).sides());
}
double Torus3dSeconds(const LinkCost& link, uint32_t world, uint64_t bytes, const Settings&) {
  return TorusAllReduceSeconds(link, MostCubic(world).sides(), bytes);
}

constexpr std::array<AllReduceAlgorithm, 9> kAlgorithms = {{
    {"ring", false, Plain<RingAllReduce>, PlainSeconds<RingAllReduceSeconds>},
    {"halving_doubling", false, Plain<HalvingDoublingAllReduce>,
     PlainSeconds<HalvingDoublingAllReduceSeconds>},
    {"recursive_doubling", false, Plain<RecursiveDoublingAllReduce>,
     PlainSeconds<RecursiveDoublingAllReduceSeconds>},
    {"binary_tree", true, InParts<BinaryTreeAllReduce>, SecondsInParts<BinaryTreeAllReduceSeconds>},
    {"hierarchical", false, Hierarchical, HierarchicalSeconds},
    {"torus_2d", false, Torus2d, Torus2dSeconds},
    {"mesh_2d", true, InParts<Mesh2dAllReduce>, SecondsInParts<Mesh2dAllReduceSeconds>},
    {"torus_3d", false, Torus3d, Torus3dSeconds},
    {"bidirectional_ring", false, Plain<BidirectionalRingAllReduce>,
     PlainSeconds<BidirectionalRingAllReduceSeconds>},
}};

}  // namespace

std::span<const AllReduceAlgorithm> AllReduceAlgorithms() { return kAlgorithms; }

const AllReduceAlgorithm* FindAllReduce(std::string_view name) {
  for (const AllReduceAlgorithm& algorithm : kAlgorithms) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

std::vector<CollectiveSchedule> AllReduceFamily(const AllReduceAlgorithm& algorithm, uint32_t world,
                                                const AllReduceSettings& settings) {
  std::vector<CollectiveSchedule> family;
  for (uint32_t rank = 0; rank < world; ++rank) {
    family.push_back(algorithm.schedule(rank, world, settings));
  }
  return family;
}

double AllReduceSeconds(const AllReduceAlgorithm& algorithm, const LinkCost& link, uint32_t world,
                        uint64_t bytes, const AllReduceSettings& settings) {
  TUG_CHECK(world > 0);
  if (settings.ranks_per_host == 1) return algorithm.seconds(link, world, bytes, settings);
  return SimulatedSeconds(
      AllReduceFamily(algorithm, world, settings),
      Topology::Hosts(world, settings.ranks_per_host, link, WithinHost(settings)), bytes);
}

AllReduceSettings WithBestParts(const AllReduceAlgorithm& algorithm, const LinkCost& link,
                                uint32_t world, uint64_t bytes, AllReduceSettings settings) {
  settings.parts = 1;
  if (!algorithm.has_parts) return settings;
  AllReduceSettings best = settings;
  double least = AllReduceSeconds(algorithm, link, world, bytes, best);
  for (settings.parts = 2; settings.parts <= kMostParts; settings.parts *= 2) {
    if (bytes / settings.parts < settings.least_part_bytes) break;
    const double seconds = AllReduceSeconds(algorithm, link, world, bytes, settings);
    if (!CostsLess(seconds, least)) continue;
    best = settings;
    least = seconds;
  }
  return best;
}

AllReduceChoice PickAllReduce(const LinkCost& link, uint32_t world, uint64_t bytes,
                              const AllReduceSettings& settings) {
  AllReduceChoice choice;
  for (const AllReduceAlgorithm& algorithm : kAlgorithms) {
    const Settings best = WithBestParts(algorithm, link, world, bytes, settings);
    const double seconds = AllReduceSeconds(algorithm, link, world, bytes, best);
    if (choice.algorithm != nullptr && !CostsLess(seconds, choice.seconds)) continue;
    choice = {&algorithm, best, seconds};
  }
  return choice;
}

}  // namespace tug
