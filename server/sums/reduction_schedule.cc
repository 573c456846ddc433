// SPDX-License-Identifier: Apache-2.0
#include "server/sums/reduction_schedule.h"

#include "base/check.h"
#include "collective/algorithms.h"

namespace tug {
namespace {

// Name of the algorithm; null: AUTO.
const char* NameOf(CollectiveConfig::Algorithm algorithm) {
  switch (algorithm) {
    case CollectiveConfig::RING:
      return "ring";
    case CollectiveConfig::HALVING_DOUBLING:
      return "halving_doubling";
    case CollectiveConfig::RECURSIVE_DOUBLING:
      return "recursive_doubling";
    case CollectiveConfig::BINARY_TREE:
      return "binary_tree";
    default:
      return nullptr;
  }
}

}  // namespace

ReductionPlan PlanReduction(const CollectiveConfig& collective, uint32_t rank, uint32_t world,
                            uint64_t bytes) {
  const char* const name = NameOf(collective.algorithm());
  if (name == nullptr) {
    const AllReduceChoice choice = PickAllReduce(kNominalLink, world, bytes, {});
    return {choice.algorithm->name, choice.algorithm->schedule(rank, world, choice.settings)};
  }
  const AllReduceAlgorithm* const algorithm = FindAllReduce(name);
  TUG_CHECK(algorithm != nullptr) << name;
  return {name, algorithm->schedule(rank, world,
                                    WithBestParts(*algorithm, kNominalLink, world, bytes, {}))};
}

ElementType ReductionType(const CollectiveConfig& collective) {
  switch (collective.format()) {
    case CollectiveConfig::BF16:
      return ElementType::kBf16;
    case CollectiveConfig::FP16:
      return ElementType::kFp16;
    default:
      return ElementType::kFp32;
  }
}

}  // namespace tug
