// SPDX-License-Identifier: Apache-2.0
#include "collective/network/schedule_proof.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "collective/schedules/recursive_doubling.h"
#include "collective/schedules/ring.h"

namespace tug {
namespace {

bool Everything(uint32_t, uint32_t) { return true; }

std::vector<CollectiveSchedule> Rings(uint32_t world) {
  std::vector<CollectiveSchedule> family;
  for (uint32_t rank = 0; rank < world; ++rank) family.push_back(RingAllReduce(rank, world));
  return family;
}

// Proves without hazards: WriteHazards is not for families that break the contract.
std::string ErrorOf(const std::vector<CollectiveSchedule>& family) {
  SumTerms terms;
  const std::vector<std::vector<WriteHazard>> none(family.size());
  return ProveSchedules(family, none, Everything, terms).error;
}

TEST(ScheduleProof, FindsNothingWrongWithARing) { EXPECT_EQ(ErrorOf(Rings(5)), ""); }

TEST(ScheduleProof, FindsATransferThatNobodyExpects) {
  std::vector<CollectiveSchedule> family = Rings(4);
  family[2].steps.back().receives.clear();
  EXPECT_NE(ErrorOf(family).find("rank 1 of 4 sends a message that no rank expects, in step"),
            std::string::npos);
}

TEST(ScheduleProof, FindsATransferOfOtherParts) {
  std::vector<CollectiveSchedule> family = Rings(4);
  family[2].steps[1].receives[0].begin -= 1;
  EXPECT_NE(ErrorOf(family).find("expects a different message from the one sent, in step 1"),
            std::string::npos);
}

TEST(ScheduleProof, FindsReceivesOfAStepThatOverlap) {
  const std::vector<CollectiveSchedule> family = {
      {1, {{{}, {{1, 0, 1, true}, {2, 0, 1, true}}}}},
      {1, {{{{0, 0, 1}}, {}}}},
      {1, {{{{0, 0, 1}}, {}}}},
  };
  EXPECT_NE(ErrorOf(family).find("overlap"), std::string::npos);
}

TEST(ScheduleProof, FindsAContributionSummedTwice) {
  std::vector<CollectiveSchedule> family = Rings(3);
  for (CollectiveSchedule& schedule : family) schedule.steps[2].receives[0].reduces = true;
  EXPECT_NE(ErrorOf(family).find("sums a contribution twice"), std::string::npos);
}

TEST(ScheduleProof, FindsAContributionLost) {
  std::vector<CollectiveSchedule> family = Rings(3);
  family[1].steps[1].receives[0].reduces = false;
  EXPECT_NE(ErrorOf(family).find("loses a contribution"), std::string::npos);
}

TEST(ScheduleProof, FindsAPartSentWithNothingInIt) {
  SumTerms terms;
  const auto own = [](uint32_t rank, uint32_t part) { return rank == part; };
  const std::vector<CollectiveSchedule> family = Rings(3);
  EXPECT_NE(ProveSchedules(family, WriteHazards(family), own, terms).error.find("sends nothing"),
            std::string::npos);
}

// A receive waits for the reader of data that is computed from it.
TEST(ScheduleProof, FindsADeadlock) {
  const std::vector<CollectiveSchedule> family = {
      {1, {{{}, {{1, 0, 1, true}}}, {{{1, 0, 1}}, {}}}},
      {1, {{{{0, 0, 1}}, {}}, {{}, {{0, 0, 1}}}}},
  };
  EXPECT_EQ(ErrorOf(family), "");
  std::vector<std::vector<WriteHazard>> hazards(2);
  hazards[0] = {{0, 0, 1, 0}};
  SumTerms terms;
  EXPECT_NE(ProveSchedules(family, hazards, Everything, terms).error.find("waits forever"),
            std::string::npos);
}

// Two steps later rank 0 gets back a part that rank 2 has read and rank 1 perhaps has not.
TEST(ScheduleProof, FindsAWriteThatSeldomComesTooEarly) {
  const std::vector<CollectiveSchedule> family = {
      {1, {{{{1, 0, 1}, {2, 0, 1}}, {}}, {}, {{}, {{2, 0, 1}}}}},
      {1, {{{}, {{0, 0, 1}}}, {}, {}}},
      {1, {{{}, {{0, 0, 1, true}}}, {}, {{{0, 0, 1}}, {}}}},
  };
  const auto root = [](uint32_t rank, uint32_t) { return rank != 1; };
  SumTerms terms;
  const std::vector<std::vector<WriteHazard>> none(3);
  EXPECT_EQ(ProveSchedules(family, none, root, terms).error,
            "rank 0 of 3 overwrites data that a peer has not read yet, in step 2");
  EXPECT_EQ(ProveSchedules(family, WriteHazards(family), root, terms).error, "");
}

TEST(ScheduleProof, FindsAWriteThatAPeerHasYetToReadUnlessHazardsAreHeeded) {
  std::vector<CollectiveSchedule> family;
  for (uint32_t rank = 0; rank < 4; ++rank) family.push_back(RecursiveDoublingAllReduce(rank, 4));
  SumTerms terms;
  EXPECT_EQ(ProveSchedules(family, WriteHazards(family), Everything, terms).error, "");
  EXPECT_NE(ErrorOf(family).find("not read yet"), std::string::npos);
}

}  // namespace
}  // namespace tug
