// SPDX-License-Identifier: Apache-2.0
// Proves for worlds of 1 to 33 that every schedule keeps the contract of schedule.h in every order
// of its events (schedule_proof.h), and ends with the result its header states.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collective/algorithms.h"
#include "collective/collective_test_support.h"
#include "collective/network/schedule_proof.h"
#include "collective/network/write_hazards.h"
#include "collective/schedules/ring.h"

namespace tug {
namespace {

constexpr uint32_t kLargestWorld = 33;

using ScheduleOf = std::function<CollectiveSchedule(uint32_t rank, uint32_t world)>;
using BeginsWith = std::function<bool(uint32_t rank, uint32_t part)>;
// Expected term of a rank's part.
using Wanted = std::function<uint32_t(SumTerms& terms, uint32_t rank, uint32_t part)>;

std::vector<CollectiveSchedule> FamilyOf(const ScheduleOf& schedule, uint32_t world) {
  std::vector<CollectiveSchedule> family;
  for (uint32_t rank = 0; rank < world; ++rank) family.push_back(schedule(rank, world));
  return family;
}

bool Everything(uint32_t, uint32_t) { return true; }
bool OwnPart(uint32_t rank, uint32_t part) { return rank == part; }

uint64_t AllRanks(uint32_t world) { return (uint64_t{1} << world) - 1; }

void ExpectEnds(const std::vector<CollectiveSchedule>& family, const BeginsWith& begins_with,
                const Wanted& wanted, const std::string& what) {
  SumTerms terms;
  const ScheduleProof proof = ProveSchedules(family, WriteHazards(family), begins_with, terms);
  ASSERT_EQ(proof.error, "") << what;
  for (uint32_t rank = 0; rank < family.size(); ++rank) {
    for (uint32_t part = 0; part < family[rank].parts; ++part) {
      ASSERT_EQ(proof.held[rank][part], wanted(terms, rank, part))
          << what << " rank " << rank << " part " << part;
    }
  }
}

// Expects that all ranks for which `has` holds for a part have the same sum of all contributions.
void ExpectSums(const std::vector<CollectiveSchedule>& family, const BeginsWith& has,
                const std::string& what) {
  SumTerms terms;
  const ScheduleProof proof = ProveSchedules(family, WriteHazards(family), Everything, terms);
  ASSERT_EQ(proof.error, "") << what;
  const uint32_t world = static_cast<uint32_t>(family.size());
  std::vector<uint32_t> sum(family[0].parts);
  for (uint32_t rank = 0; rank < world; ++rank) {
    for (uint32_t part = 0; part < sum.size(); ++part) {
      if (!has(rank, part)) continue;
      const uint32_t held = proof.held[rank][part];
      ASSERT_EQ(terms.ranks(held), AllRanks(world)) << what << " rank " << rank;
      ASSERT_EQ(terms.part(held), part) << what << " rank " << rank;
      if (sum[part] == SumTerms::kNothing) sum[part] = held;
      ASSERT_EQ(held, sum[part]) << what << " rank " << rank << ": other bits";
    }
  }
}

// Omitting any one hazard makes the proof find a race: so the proof can fail, and no hazard is
// superfluous.
void ExpectNeedsEachHazard(const std::vector<CollectiveSchedule>& family, const std::string& what) {
  const std::vector<std::vector<WriteHazard>> all = WriteHazards(family);
  SumTerms terms;
  for (uint32_t rank = 0; rank < family.size(); ++rank) {
    for (size_t i = 0; i < all[rank].size(); ++i) {
      std::vector<std::vector<WriteHazard>> others = all;
      others[rank].erase(others[rank].begin() + static_cast<ptrdiff_t>(i));
      ASSERT_NE(ProveSchedules(family, others, Everything, terms).error.find("not read yet"),
                std::string::npos)
          << what << " without hazard " << i << " of rank " << rank;
    }
  }
}

std::vector<AllReduceSettings> SettingsToTry(const AllReduceAlgorithm& algorithm) {
  const std::string name = algorithm.name;
  std::vector<AllReduceSettings> all;
  if (algorithm.has_parts) {
    for (uint32_t parts : {1, 2, 3, 8}) all.push_back({.parts = parts});
  } else if (name == "hierarchical") {
    for (uint32_t ranks : {1, 2, 3, 4, 7, 8, 40}) all.push_back({.ranks_per_host = ranks});
  } else {
    all.push_back({});
  }
  return all;
}

TEST(AllReduceSchedules, SumEachContributionOnceToTheSameBitsOnAllRanks) {
  for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
    for (const AllReduceSettings& settings : SettingsToTry(algorithm)) {
      for (uint32_t world = 1; world <= kLargestWorld; ++world) {
        const std::string what = std::string(algorithm.name) + " of " + std::to_string(world) +
                                 " in " + std::to_string(settings.parts) + " parts, " +
                                 std::to_string(settings.ranks_per_host) + " ranks a host";
        ASSERT_NO_FATAL_FAILURE(
            ExpectSums(AllReduceFamily(algorithm, world, settings), Everything, what));
      }
    }
  }
}

TEST(AllReduceSchedules, SchedulesOfOneRankHaveNoSteps) {
  for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
    for (const AllReduceSettings& settings : SettingsToTry(algorithm)) {
      EXPECT_TRUE(algorithm.schedule(0, 1, settings).steps.empty()) << algorithm.name;
    }
  }
}

TEST(AllReduceSchedulesDeathTest, AreOfRanksThatThereAre) {
  for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
    EXPECT_DEATH(algorithm.schedule(4, 4, {}), "rank < world") << algorithm.name;
    EXPECT_DEATH(algorithm.schedule(0, 0, {}), "world") << algorithm.name;
  }
}

TEST(AllReduceSchedules, HaveWriteHazardsOnlyWhereTheyAreSaidToHaveThem) {
  for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
    for (const AllReduceSettings& settings : SettingsToTry(algorithm)) {
      for (uint32_t world = 1; world <= kLargestWorld; ++world) {
        const std::vector<CollectiveSchedule> family = AllReduceFamily(algorithm, world, settings);
        size_t hazards = 0;
        for (const auto& of_rank : WriteHazards(family)) hazards += of_rank.size();
        const std::string name = algorithm.name;
        if (name == "recursive_doubling") {
          // One hazard per exchange and participating rank.
          uint32_t members = 1, rounds = 0;
          for (; members * 2 <= world; members *= 2) ++rounds;
          EXPECT_EQ(hazards, size_t{members} * rounds) << world;
        } else {
          EXPECT_EQ(hazards, 0u) << name << " of " << world;
        }
      }
    }
  }
}

TEST(AllReduceSchedules, RaceWithoutAnyOneOfTheirWriteHazards) {
  for (uint32_t world = 1; world <= 24; ++world) {
    ASSERT_NO_FATAL_FAILURE(
        ExpectNeedsEachHazard(AllReduceFamily(*FindAllReduce("recursive_doubling"), world, {}),
                              "recursive doubling of " + std::to_string(world)));
  }
}

TEST(RingSchedules, LeaveEachRankTheSumOfItsOwnPart) {
  for (uint32_t world = 1; world <= kLargestWorld; ++world) {
    ASSERT_NO_FATAL_FAILURE(ExpectSums(FamilyOf(RingReduceScatter, world), OwnPart,
                                       "reduce-scatter of " + std::to_string(world)));
  }
}

TEST(RingSchedules, GatherThePartsOfAllOnAll) {
  for (uint32_t world = 1; world <= kLargestWorld; ++world) {
    ASSERT_NO_FATAL_FAILURE(ExpectEnds(
        FamilyOf(RingAllGather, world), OwnPart,
        [](SumTerms& terms, uint32_t, uint32_t part) { return terms.Leaf(part, part); },
        "all-gather of " + std::to_string(world)));
  }
}

TEST(BinomialTree, BroadcastsFromRank0) {
  for (uint32_t world = 1; world <= kLargestWorld; ++world) {
    ASSERT_NO_FATAL_FAILURE(ExpectEnds(
        FamilyOf(BroadcastFromRank0, world), [](uint32_t rank, uint32_t) { return rank == 0; },
        [](SumTerms& terms, uint32_t, uint32_t part) { return terms.Leaf(0, part); },
        "broadcast of " + std::to_string(world)));
  }
}

TEST(BinomialTree, ReducesToRank0) {
  for (uint32_t world = 1; world <= kLargestWorld; ++world) {
    ASSERT_NO_FATAL_FAILURE(ExpectSums(
        FamilyOf(ReduceToRank0, world), [](uint32_t rank, uint32_t) { return rank == 0; },
        "reduce of " + std::to_string(world)));
  }
}

}  // namespace
}  // namespace tug
