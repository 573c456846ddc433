#include "collective/algorithms.h"

#include <array>

#include "collective/binary_tree.h"
#include "collective/halving_doubling.h"
#include "collective/hierarchical.h"
#include "collective/mesh_2d.h"
#include "collective/recursive_doubling.h"
#include "collective/ring.h"
#include "collective/torus_2d.h"
#include "collective/torus_3d.h"

namespace tug {
namespace {

using Settings = AllReduceSettings;

constexpr uint32_t kMostParts = 256;
// Costs closer than this, relatively, are the same: sums of the same terms in another order.
constexpr double kSame = 1e-9;

bool CostsLess(double seconds, double than) { return seconds < than * (1 - kSame); }

// An algorithm without settings.
template <Schedule (*schedule)(uint32_t, uint32_t)>
Schedule Plain(uint32_t rank, uint32_t world, const Settings&) {
  return schedule(rank, world);
}
template <double (*seconds)(const LinkCost&, uint32_t, uint64_t)>
double PlainSeconds(const LinkCost& link, uint32_t world, uint64_t bytes, const Settings&) {
  return seconds(link, world, bytes);
}

// One that is pipelined.
template <Schedule (*schedule)(uint32_t, uint32_t, uint32_t)>
Schedule InParts(uint32_t rank, uint32_t world, const Settings& settings) {
  return schedule(rank, world, settings.parts);
}
template <double (*seconds)(const LinkCost&, uint32_t, uint32_t, uint64_t)>
double SecondsInParts(const LinkCost& link, uint32_t world, uint64_t bytes,
                      const Settings& settings) {
  return seconds(link, world, settings.parts, bytes);
}

Schedule Hierarchical(uint32_t rank, uint32_t world, const Settings& settings) {
  return HierarchicalAllReduce(rank, world, settings.ranks_per_host);
}
double HierarchicalSeconds(const LinkCost& link, uint32_t world, uint64_t bytes,
                           const Settings& settings) {
  return HierarchicalAllReduceSeconds(link, settings.within_host, world, settings.ranks_per_host,
                                      bytes);
}

constexpr std::array<AllReduceAlgorithm, 8> kAlgorithms = {{
    {"ring", Plain<RingAllReduce>, PlainSeconds<RingAllReduceSeconds>, "Patarasuk and Yuan 2009"},
    {"halving_doubling", Plain<HalvingDoublingAllReduce>,
     PlainSeconds<HalvingDoublingAllReduceSeconds>, "Rabenseifner 2004"},
    {"recursive_doubling", Plain<RecursiveDoublingAllReduce>,
     PlainSeconds<RecursiveDoublingAllReduceSeconds>, "Thakur, Rabenseifner and Gropp 2005"},
    {"binary_tree", InParts<BinaryTreeAllReduce>, SecondsInParts<BinaryTreeAllReduceSeconds>,
     "Sanders, Speck and Traeff 2009"},
    {"hierarchical", Hierarchical, HierarchicalSeconds, "Jia et al. 2018"},
    {"torus_2d", Plain<Torus2dAllReduce>, PlainSeconds<Torus2dAllReduceSeconds>,
     "Mikami et al. 2018"},
    {"mesh_2d", InParts<Mesh2dAllReduce>, SecondsInParts<Mesh2dAllReduceSeconds>,
     "Ying et al. 2018"},
    {"torus_3d", Plain<Torus3dAllReduce>, PlainSeconds<Torus3dAllReduceSeconds>,
     "Jouppi et al. 2023"},
}};

}  // namespace

std::span<const AllReduceAlgorithm> AllReduceAlgorithms() { return kAlgorithms; }

const AllReduceAlgorithm* FindAllReduce(std::string_view name) {
  for (const AllReduceAlgorithm& algorithm : kAlgorithms) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

std::vector<Schedule> AllReduceFamily(const AllReduceAlgorithm& algorithm, uint32_t world,
                                      const AllReduceSettings& settings) {
  std::vector<Schedule> family;
  for (uint32_t rank = 0; rank < world; ++rank) {
    family.push_back(algorithm.schedule(rank, world, settings));
  }
  return family;
}

AllReduceSettings WithBestParts(const AllReduceAlgorithm& algorithm, const LinkCost& link,
                                uint32_t world, uint64_t bytes, AllReduceSettings settings) {
  AllReduceSettings best = settings;
  best.parts = 1;
  for (settings.parts = 2; settings.parts <= kMostParts; settings.parts *= 2) {
    if (CostsLess(algorithm.seconds(link, world, bytes, settings),
                  algorithm.seconds(link, world, bytes, best))) {
      best = settings;
    }
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
