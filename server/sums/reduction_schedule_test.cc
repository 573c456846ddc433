// SPDX-License-Identifier: Apache-2.0
#include "server/sums/reduction_schedule.h"

#include <vector>

#include "collective/network/schedule_proof.h"
#include "collective/network/write_hazards.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(PlanReduction, AllRanksTakePartInTheSameAllReduce) {
  for (const auto algorithm :
       {CollectiveConfig::AUTO, CollectiveConfig::RING, CollectiveConfig::HALVING_DOUBLING,
        CollectiveConfig::RECURSIVE_DOUBLING, CollectiveConfig::BINARY_TREE}) {
    CollectiveConfig collective;
    collective.set_algorithm(algorithm);
    for (const uint32_t world : {1u, 2u, 3u, 4u, 8u}) {
      for (const uint64_t bytes : {4096u, 1u << 20, 64u << 20}) {
        std::vector<CollectiveSchedule> schedules;
        for (uint32_t rank = 0; rank < world; ++rank) {
          schedules.push_back(PlanReduction(collective, rank, world, bytes).schedule);
        }
        SumTerms terms;
        const auto everything = [](uint32_t, uint32_t) { return true; };
        const ScheduleProof proof =
            ProveSchedules(schedules, WriteHazards(schedules), everything, terms);
        ASSERT_EQ(proof.error, "")
            << CollectiveConfig::Algorithm_Name(algorithm) << " of " << world;
        for (const std::vector<uint32_t>& held : proof.held) {
          EXPECT_EQ(held, proof.held[0]) << "other bits";
          for (const uint32_t term : held) {
            EXPECT_EQ(terms.ranks(term), (uint64_t{1} << world) - 1);
          }
        }
      }
    }
  }
}

TEST(PlanReduction, AutoTakesFewerRoundsForLessBytes) {
  CollectiveConfig collective;
  collective.set_algorithm(CollectiveConfig::AUTO);
  const ReductionPlan little = PlanReduction(collective, 0, 8, 1 << 10);
  const ReductionPlan much = PlanReduction(collective, 0, 8, 64 << 20);
  EXPECT_LT(little.schedule.steps.size(), much.schedule.steps.size());
  EXPECT_STREQ(little.algorithm, "recursive_doubling");
}

TEST(PlanReduction, NamesTheAlgorithmOfTheJob) {
  CollectiveConfig collective;
  collective.set_algorithm(CollectiveConfig::HALVING_DOUBLING);
  EXPECT_STREQ(PlanReduction(collective, 0, 4, 1 << 20).algorithm, "halving_doubling");
}

TEST(PlanReduction, SendsWhatTheJobSays) {
  CollectiveConfig collective;
  EXPECT_EQ(ReductionType(collective), ElementType::kFp32);
  collective.set_format(CollectiveConfig::BF16);
  EXPECT_EQ(ReductionType(collective), ElementType::kBf16);
  collective.set_format(CollectiveConfig::FP16);
  EXPECT_EQ(ReductionType(collective), ElementType::kFp16);
}

}  // namespace
}  // namespace tug
