// SPDX-License-Identifier: Apache-2.0
#include "collective/algorithms.h"

#include <array>

#include "base/check.h"
#include "collective/schedules/binary_tree.h"
#include "collective/schedules/grid.h"
#include "collective/schedules/halving_doubling.h"
#include "collective/schedules/hierarchical.h"
#include "collective/schedules/recursive_doubling.h"
#include "collective/schedules/ring.h"
#include "collective/schedules/torus.h"

namespace tug {
namespace {

using Settings = AllReduceSettings;

constexpr uint32_t kMaxParts = 256;
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

CollectiveSchedule BinaryTree(uint32_t rank, uint32_t world, const Settings& settings) {
  return BinaryTreeAllReduce(rank, world, settings.parts);
}
double BinaryTreeSeconds(const LinkCost& link, uint32_t world, uint64_t bytes,
                         const Settings& settings) {
  return BinaryTreeAllReduceSeconds(link, world, settings.parts, bytes);
}

CollectiveSchedule Hierarchical(uint32_t rank, uint32_t world, const Settings& settings) {
  return HierarchicalAllReduce(rank, world, settings.ranks_per_host);
}
double HierarchicalSeconds(const LinkCost& link, uint32_t world, uint64_t bytes,
                           const Settings& settings) {
  TUG_CHECK(settings.ranks_per_host == 1 || settings.within_host)
      << "a cost with " << settings.ranks_per_host << " ranks a host needs within_host";
  return HierarchicalAllReduceSeconds(link, settings.within_host.value_or(LinkCost{}), world,
                                      settings.ranks_per_host, settings.chunk_bytes, bytes);
}

CollectiveSchedule Torus2d(uint32_t rank, uint32_t world) {
  return TorusAllReduce(rank, MostSquare(world).sides());
}
double Torus2dSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  return TorusAllReduceSeconds(link, MostSquare(world).sides(), bytes);
}
CollectiveSchedule Torus3d(uint32_t rank, uint32_t world) {
  return TorusAllReduce(rank, MostCubic(world).sides());
}
double Torus3dSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  return TorusAllReduceSeconds(link, MostCubic(world).sides(), bytes);
}

constexpr std::array<AllReduceAlgorithm, 7> kAlgorithms = {{
    {"ring", false, Plain<RingAllReduce>, PlainSeconds<RingAllReduceSeconds>},
    {"halving_doubling", false, Plain<HalvingDoublingAllReduce>,
     PlainSeconds<HalvingDoublingAllReduceSeconds>},
    {"recursive_doubling", false, Plain<RecursiveDoublingAllReduce>,
     PlainSeconds<RecursiveDoublingAllReduceSeconds>},
    {"binary_tree", true, BinaryTree, BinaryTreeSeconds},
    {"hierarchical", false, Hierarchical, HierarchicalSeconds},
    {"torus_2d", false, Plain<Torus2d>, PlainSeconds<Torus2dSeconds>},
    {"torus_3d", false, Plain<Torus3d>, PlainSeconds<Torus3dSeconds>},
}};

}  // namespace

std::span<const AllReduceAlgorithm> AllReduceAlgorithms() { return kAlgorithms; }

const AllReduceAlgorithm* FindAllReduce(std::string_view name) {
  for (const AllReduceAlgorithm& algorithm : kAlgorithms) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

AllReduceSettings WithBestParts(const AllReduceAlgorithm& algorithm, const LinkCost& link,
                                uint32_t world, uint64_t bytes, AllReduceSettings settings) {
  settings.parts = 1;
  if (!algorithm.has_parts) return settings;
  AllReduceSettings best = settings;
  double least = algorithm.seconds(link, world, bytes, best);
  for (settings.parts = 2; settings.parts <= kMaxParts; settings.parts *= 2) {
    if (bytes / settings.parts < settings.min_part_bytes) break;
    const double seconds = algorithm.seconds(link, world, bytes, settings);
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
    const double seconds = algorithm.seconds(link, world, bytes, best);
    if (choice.algorithm != nullptr && !CostsLess(seconds, choice.seconds)) continue;
    choice = {&algorithm, best, seconds};
  }
  return choice;
}

}  // namespace tug
